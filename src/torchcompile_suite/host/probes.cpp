// What measured calls feel and the guest's kernel cannot see: where the host runs the two virtual
// processors, and who else uses their caches. Each probe takes less than half a millisecond.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#ifdef __x86_64__
#define IN_REGISTER "+x"
#else  // ARM
#define IN_REGISTER "+w"
#endif

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHandOffs = 120, kUncounted = 20;
constexpr int kChains = 12, kSteps = 2500, kTries = 3;
constexpr size_t kLines = (4u << 20) / 64;
constexpr int kLoads = 1000;

struct alignas(64) Line {
  std::uint32_t next;
};

double nanoseconds(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

void run_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Chains of multiplications and additions, so many that one thread alone fills the units of a core:
// on two hyperthreads of one core they take twice as long.
double compute() {
  volatile double seed = 1.0000001;
  double chains[kChains];
  std::fill(chains, chains + kChains, double(seed));
  const auto start = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (double& chain : chains) {
      chain = chain * 1.0000001 + 1e-9;
      asm("" : IN_REGISTER(chain));  // of its own: the chains are not vectorised
    }
  }
  const auto time = Clock::now() - start;
  seed = std::accumulate(chains, chains + kChains, 0.0);
  return nanoseconds(time);
}

// One chain, in which each operation waits for the one before: a neighbour on the other hyperthread
// of the core does not slow it.
double chain() {
  volatile double seed = 1.0000001;
  double value = seed;
  const auto start = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
    value = value * 1.0000001 + 1e-9;
    asm("" : IN_REGISTER(value));
  }
  const auto time = Clock::now() - start;
  seed = value;
  return nanoseconds(time);
}

// One cycle through all lines in random order, so no prefetcher knows the next one.
std::vector<Line>& lines() {
  static std::vector<Line> made = [] {
    std::vector<std::uint32_t> order(kLines);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(0));
    std::vector<Line> all(kLines);
    for (size_t i = 0; i < kLines; ++i) all[order[i]].next = order[(i + 1) % kLines];
    return all;
  }();
  return made;
}

}  // namespace

// found[0]: nanoseconds of a hand-off, from a thread on `first` to one on `second` and back, the
// median. found[1]: the time of a computation on both processors at once, over alone.
// found[2]: nanoseconds of a load from 4 MiB. found[3]: nanoseconds of the computation on both
// processors, the mean of the two. found[4]: nanoseconds of one chain.
extern "C" void probes(int first, int second, double* found) {
  static std::uint32_t at = 0;
  auto& chase = lines();
  std::thread([&] {
    run_on(first);
    double alone = 1e30, here = 1e30, there = 1e30, one_chain = 1e30;
    for (int i = 0; i < kTries; ++i) alone = std::min(alone, compute());
    for (int i = 0; i < kTries; ++i) one_chain = std::min(one_chain, chain());

    alignas(128) std::atomic<int> go{0};
    alignas(128) std::atomic<int> done{0};
    std::thread other([&] {
      run_on(second);
      for (int turn = 1; turn <= kHandOffs; ++turn) {
        while (go.load(std::memory_order_acquire) < turn) {
        }
        done.store(turn, std::memory_order_release);
      }
      for (int i = 0; i < kTries; ++i) there = std::min(there, compute());
    });
    std::vector<double> times;
    for (int turn = 1; turn <= kHandOffs; ++turn) {
      const auto start = Clock::now();
      go.store(turn, std::memory_order_release);
      while (done.load(std::memory_order_acquire) < turn) {
      }
      // The first ones wait for the thread to start.
      if (turn > kUncounted) times.push_back(nanoseconds(Clock::now() - start));
    }
    for (int i = 0; i < kTries; ++i) here = std::min(here, compute());
    other.join();

    const auto start = Clock::now();
    for (int load = 0; load < kLoads; ++load) at = chase[at].next;
    found[2] = nanoseconds(Clock::now() - start) / kLoads;
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    found[0] = times[times.size() / 2];
    found[1] = std::max(here, there) / alone;
    found[3] = (here + there) / 2;
    found[4] = one_chain;
  }).join();
}
