"""Rules for document 004: modes, CUDA graphs, fusion, shapes and training."""

from __future__ import annotations

from statistics import median_low

from ... import matrix, workloads
from ...modes import EAGER
from .. import change, statistics
from ..statistics import Interval
from .evidence import (
    ABOUT,
    Evidence,
    Finding,
    Rules,
    about,
    above,
    all_of,
    any_of,
    inference,
    listed,
    skipped,
    some,
    training,
    within,
)

RULES = Rules()
# Mode -> the claimed range of the speedup, and of the cold compile in seconds.
MODES = {
    "default": ((1.3, 1.8), (10, 30)),
    "reduce-overhead": ((2, 3), (30, 120)),
    "max-autotune": ((1.8, 2.5), (300, 3600)),
}


@RULES("mode-trade-offs")
def _modes(evidence: Evidence) -> Finding:
    """The mean speedup and the median cold compile of each mode, over the same workloads."""
    of_all = [
        name
        for name in workloads.names()
        if all(evidence.has(inference(name, mode)) for mode in MODES)
    ]
    # A mean leaves out what has no interval: of each mode another workload.
    known = (
        name
        for name in of_all
        if all(evidence.speedup(inference(name, mode)).known for mode in MODES)
    )
    names = some(list(known) or of_all, "no workload was measured in all three modes")
    parts, reasons, gains = [], [], {}
    for mode, (speedups, seconds) in MODES.items():
        cells = [inference(name, mode) for name in names]
        gains[mode] = evidence.mean_speedup(cells)
        cost_s = median_low(evidence.cold_compile(cell) for cell in cells)
        parts += [within(gains[mode], *speedups), within(cost_s, *seconds)]
        reasons.append(f"{mode} {gains[mode]} times for {cost_s.value:.0f} s")
    return Finding(
        all_of(*parts),
        f"{', '.join(reasons)}; mean of {', '.join(names)}",
        interval=gains["default"],
    )


@RULES("cuda-graphs-launch-100x")
def _cuda_graphs(evidence: Evidence) -> Finding:
    """The device waits for the host for at most a hundredth of the time, within 15 %.

    It waits for what a timed call takes longer than its kernels. Not the time line's own gaps: the
    profiler slows the host (evidence/gpu/README.md).
    """
    waits, launches = [], []
    for mode in ("default", "reduce-overhead"):
        cell = inference("gpt_decode", mode)
        profile, call = evidence.profile(cell), evidence.latency(cell)
        busy_s = profile.busy_s / profile.calls
        waits.append(Interval(*(max(end - busy_s, 0.0) for end in call)))
        launches.append(profile.kernel_launches / profile.calls)
    before, after = waits
    least = 100 * (1 - ABOUT)
    enough = 0 < before.low >= least * after.high
    too_few = before.high < least * after.low
    # The profiler may make kernels longer: longer than the call, they do not tell the wait.
    known = before.high > 0 and after.high > 0
    return Finding(
        enough if known and (enough or too_few) else None,
        f"gpt_decode: {launches[0]:.0f} kernel launches a call become {launches[1]:.0f}; the "
        f"device waits {before.scaled(1e6):.0f} us a call, then {after.scaled(1e6):.0f} us",
        ours=before.value / after.value if after.value else None,
        opened="the interval does not decide" if known else "its kernels took longer than the call",
    )


@RULES("cuda-graphs-make-40-launches-one")
def _one_launch(evidence: Evidence) -> Finding:
    """The document's 40 is an example, so any number of kernels that becomes one launch confirms
    it.
    """
    workload = "gpt_decode"
    without = evidence.generated(workload).total("launches") or 0
    code = evidence.generated(workload, "reduce-overhead")
    with_graphs = code.total("launches_with_cuda_graphs") or 0
    return Finding(
        without > 1 and with_graphs == 1,
        f"{workload}: {without} launches of a call become {with_graphs}{skipped(code)}",
        ours=float(without),
    )


@RULES("entropy-fusion-3x-traffic")
def _entropy(evidence: Evidence) -> Finding:
    cell = inference("entropy_in_memory")
    traffic = evidence.count(cell, "eager_bytes") / evidence.count(cell, "bytes_after")
    kernels = evidence.count(cell, "kernels")
    speedup = evidence.speedup(cell)
    # The document counts three operators. Here they are five, so fusion can save more traffic, and
    # more time.
    return Finding(
        all_of(kernels == 1, traffic >= 3 * (1 - ABOUT), above(speedup, 2.75 * (1 - ABOUT))),
        f"kernels: {kernels}, {traffic:.1f} times less traffic, {speedup} times as fast",
        interval=speedup,
    )


@RULES("entropy-is-one-gpu-kernel")
def _entropy_gpu(evidence: Evidence) -> Finding:
    code = evidence.generated("entropy_in_memory").forward
    less = code.bytes_before / code.bytes_after if code.bytes_after else 0.0
    return Finding(
        code.triton_kernels == 1 and less >= 3 * (1 - ABOUT),
        f"{code.triton_kernels} Triton kernel for {code.nodes_before} operations, {less:.1f} times "
        "less traffic than without fusion",
        ours=less,
    )


@RULES("relevance-scorers-2.75x")
def _scorers(evidence: Evidence) -> Finding:
    compiled = evidence.mean_speedup(evidence.family("relevance"))
    overhead = evidence.mean_speedup(evidence.family("relevance", "reduce-overhead"))
    scorer = "relevance_information"
    # The document compares compiled in bfloat16 with eager in float32.
    eager = evidence.latency(training(scorer), eager=True)
    trained = evidence.over(eager, evidence.latency(training(scorer, "bfloat16")))
    return Finding(
        all_of(about(compiled, 2.75), about(overhead, 6.0), about(trained, 3.0)),
        f"times as fast: default {compiled}, reduce-overhead {overhead}, training compiled in "
        f"bfloat16 {trained}",
        interval=compiled,
    )


@RULES("small-batches-gain-most")
def _small_batches(evidence: Evidence) -> Finding:
    gains = {}
    for name in workloads.names():
        cells = inference(name), inference(name, batch_size=8)
        if all(map(evidence.has, cells)):
            gains[name] = statistics.quotient(*map(evidence.speedup, cells))
    each = some(gains.values(), "no workload was measured at batch 1 and at batch 8")
    mean = statistics.geometric_mean(each)
    return Finding(
        above(mean, 1.0),
        f"gain at batch 1 over that at batch 8: {mean}, mean of {listed(gains)}",
        interval=mean,
    )


@RULES("dynamic-shapes-need-a-strategy")
def _shapes(evidence: Evidence) -> Finding:
    cells = {
        policy: matrix.DYNAMIC_SHAPES.cell("gpt_prefill", policy)
        for policy in ("recompile", "dynamic", "buckets")
    }
    graphs = {policy: evidence.count(cell, "graphs") for policy, cell in cells.items()}
    slower = statistics.quotient(
        evidence.ratio(cells["dynamic"]), evidence.ratio(cells["recompile"])
    )
    return Finding(
        all_of(
            graphs["recompile"] > graphs["buckets"] > 0,
            graphs["dynamic"] == 1,
            above(slower, 1.0),
        ),
        f"graphs for the stream: {listed(graphs)}; dynamic takes {slower} of the static time",
        interval=slower,
    )


@RULES("backends-locate-the-gain")
def _backends(evidence: Evidence) -> Finding:
    """Some workload gains with inductor, and does not gain with aot_eager before it."""
    reasons, located = [], []
    for name in workloads.tagged("backends"):
        ratios = {
            backend: evidence.ratio(cell)
            for backend in matrix.BACKENDS
            if evidence.has(cell := matrix.BACKEND.cell(name, backend))
        }
        if not {"eager", "aot_eager", "inductor"} <= set(ratios):
            continue
        values = {backend: ratio.value for backend, ratio in ratios.items()}
        reasons.append(f"{name}: {listed(values, '.2f')}")
        before, after = (statistics.inverse(ratios[name]) for name in ("aot_eager", "inductor"))
        located.append(
            all_of(
                above(after, 1.0),
                before.low <= 1 if before.known else None,
                above(statistics.quotient(after, before), 1.0),
            )
        )
    missing = "no workload was measured with the backends eager, aot_eager and inductor"
    return Finding(any_of(*some(located, missing)), f"of eager's time: {'; '.join(reasons)}")


@RULES("training-1.4-2.5x")
def _training_gain(evidence: Evidence) -> Finding:
    """Of models in float32, one figure each: that of the mode in which its step gains most, chosen
    by these figures.
    """
    models: dict[str, list[Interval]] = {}
    for cell in matrix.TRAINING.by_cell:
        plain = cell.dtype == "float32" and cell.accumulation == 1 and cell.mode != EAGER
        if plain and change.of_model(cell) and evidence.has(cell):
            models.setdefault(cell.workload, []).append(evidence.speedup(cell))
    every = some(models.values(), "no compiled training step of a model was measured")
    best = statistics.having(max(statistics.having(gains)) for gains in every)
    gain = statistics.geometric_mean(best)
    values = [one.value for one in best]
    return Finding(
        within(gain, 1.4, 2.5),
        f"{gain} times as fast, mean over the training steps of models ({len(best)}), each "
        f"in its best mode, which have {min(values):.2f} to {max(values):.2f}",
        interval=gain,
    )
