"""Real launches and measurements: torch of the newest release, real compiles, real failures."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import DEFAULT_HEAP, Cell
from torchcompile_suite.launch import caches
from torchcompile_suite.measurement import METHOD, TOO_BUSY, Launch, Measurement, Status
from torchcompile_suite.request import Plan, Request

from .conftest import HEADERS, NEWEST, ReleaseEnvironment, releases

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WORKLOADS = Path(__file__).with_name("workloads_that_fail.py")
# The process that the workload "slow" starts. Its argument is unique to this test process, because
# the tests look for it among all processes of the machine.
SLEEP_S = str(4_000_000 + os.getpid())
SLEEP = f"sleep {SLEEP_S}"
# Guards against a hanging test; generous, because the machine may be busy.
PATIENCE_S = 600

# Measures one cell in a process of its own, as `asv run` does. The number of pairs
# ends a launch, not the time, so that a busy machine measures as many.
MEASURE = """
import json, sys
from pathlib import Path
import msgspec
from torchcompile_suite.cell import Cell
from torchcompile_suite.request import Plan
from torchcompile_suite.host.orphans import die_with_parent
from torchcompile_suite.engine.alone import Alone
from torchcompile_suite.engine.processes import HERE
from torchcompile_suite.engine.settings import Settings

if __name__ == "__main__":
    die_with_parent()
    request = json.loads(sys.argv[1])
    record = Path(request.pop("record"))
    cell = Cell(request.pop("workload"), 1, request.pop("mode"), device=request.pop("device"))
    plan = Plan(warm_up_limit_s=1, min_pairs=5, min_timed_s=0.1, max_timed_s=100, error=1)
    request.setdefault("launches", 3)
    # Other tests run at the same time, and disturb this one.
    request.setdefault("repeats", 0)
    reuse = request.pop("reuse", False)
    alone = Alone(HERE, Settings(plan=plan, **request), record)
    measurement = (alone.recorded(cell) if reuse else None) or alone.measure(cell)
    print(msgspec.json.encode(measurement).decode())
"""


def start(
    environment: ReleaseEnvironment, folder: Path, workload: str, mode: str, **settings: Any
) -> subprocess.Popen[str]:
    variables = environment.variables(
        TORCHCOMPILE_SUITE_WORKLOADS=str(WORKLOADS),
        TESTS_SLEEP_S=SLEEP_S,
        **settings.pop("variables", {}),
    )
    request = {"workload": workload, "mode": mode, "record": str(folder / "r.jsonl")}
    request |= {"device": "cpu", **settings}
    return subprocess.Popen(
        [str(environment.python), "-c", MEASURE, json.dumps(request)],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def measure(
    environment: ReleaseEnvironment, folder: Path, workload: str, mode: str, **settings: Any
) -> Measurement:
    process = start(environment, folder, workload, mode, **settings)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return msgspec.json.decode(out.splitlines()[-1], type=Measurement)


PLAN = Plan(min_pairs=5, min_timed_s=0.5, max_timed_s=100.0, error=1)


def one_launch(
    environment: ReleaseEnvironment, folder: Path, workload: str, mode: str, **cell: str
) -> Launch:
    of = Cell(workload, 1, mode, **cell)  # type: ignore[arg-type]
    return environment.launch(Request(of, "cold", str(folder / "cache"), PLAN), WORKLOADS)


def processes_named(*texts: str) -> list[int]:
    """The ids of other processes whose command line contains all the texts."""
    ids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if all(text in command for text in texts):
                ids.append(int(folder.name))
    return ids


def wait_until(met: Callable[[], object]) -> None:
    """Wait for a condition; fail if it is never met."""
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.1)


class Measured(NamedTuple):
    """A measurement, and the folder with its record."""

    folder: Path
    measurement: Measurement


@pytest.fixture(scope="module")
def compiled(newest: ReleaseEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A workload in mode default, in two launches."""
    folder = tmp_path_factory.mktemp("compiled")
    return Measured(folder, measure(newest, folder, "well", "default", launches=2))


@pytest.fixture(scope="module")
def eager(newest: ReleaseEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """The same workload in eager, in one launch."""
    folder = tmp_path_factory.mktemp("eager")
    return Measured(folder, measure(newest, folder, "well", "eager", launches=1))


def test_json_in_json_out(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    """One command writes one launch to stdout, without what the model prints."""
    launch = newest.launch(
        Request(Cell("chatty", 1, "default"), "cold", str(tmp_path / "cache"), PLAN),
        WORKLOADS,
        **{HEADERS: "1"},
    )
    assert launch.outcome.ok, launch.outcome
    assert launch.process == "fresh", "a fork is not what a user runs"
    assert len(launch.pairs_s) >= 5
    assert launch.method == METHOD
    assert launch.calibration_s is not None
    assert 1e-5 < launch.calibration_s < 1e-2, "seconds, and no other unit"
    assert launch.environment is not None
    assert launch.environment.torch.split("+")[0] == newest.version
    assert launch.accuracy is not None
    assert launch.accuracy.reference == "float64"
    assert launch.warm_up_s[0] > 10 * min(launch.warm_up_s), "the first call compiles"
    assert launch.heap == "settled"
    assert launch.paging is not None
    assert launch.eager_paging is not None
    assert launch.peak_memory_bytes is None, "a settled heap holds more by design"
    assert any((tmp_path / "cache").rglob("*.so")), "Inductor compiled into the cache it was given"
    headers = tmp_path / "cache" / caches.TEMPORARY
    assert any(headers.rglob("*.gch")), "and what it precompiles for all models as well"


@pytest.mark.nightly
def test_the_default_heap_is_that_of_a_script(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    """Two fresh processes, each with its memory and page faults: tensors of 48 MiB make some."""
    launch = one_launch(newest, tmp_path, "large", "default", allocator=DEFAULT_HEAP)
    assert launch.outcome.ok, launch.outcome
    assert (launch.heap, launch.process) == ("default", "fresh")
    assert launch.eager_paging is not None
    assert launch.eager_paging.faults > 1000
    assert launch.eager_peak_memory_bytes is not None
    assert launch.peak_memory_bytes is not None
    # The compiler's modules are only in the process that compiles.
    assert 50e6 < launch.eager_peak_memory_bytes < launch.peak_memory_bytes < 4e9


# The clock moves only when a call runs, so the figures are exact.
TURNS = """
import json, time, types
from torchcompile_suite.cell import Cell
from torchcompile_suite.launch import device, measure, timing
from torchcompile_suite.launch.messages import Turn
from torchcompile_suite.launch.values import Restoring
from torchcompile_suite.request import Plan, Request

def copied():
    "So large that the kernel gives new memory each time."
    time.sleep(0.05)
    return b"x" * (64 << 20)

restoring = Restoring(lambda: time.sleep(0.002), copied)
of_inputs = timing.turn(restoring, device.get("cpu"), Turn("mode", 1, 0.0, 0.01))
steps = measure._Steps(Request(Cell("well", 1, "eager"), "warm", "", Plan()), "")
steps.on = device.get("cpu")
subject = types.SimpleNamespace(compile=lambda: (restoring, None), module=None)
_, _, first_call_s = steps.compile(subject, measure.Inspection())

class Clock:
    now_s = 0.0
    def perf_counter(self):
        return self.now_s

clock = timing.time = Clock()
calls = 0

def call():
    global calls
    clock.now_s += 0.010 if calls < 3 else 0.002
    calls += 1

timed = timing.turn(call, device.get("cpu"), Turn("mode", 2, 0.03, 0.04))
print(json.dumps([timed.call_s, timed.calls, calls, timed.kernel_s <= timed.cpu_s]))
print(json.dumps([of_inputs.calls, of_inputs.faults, of_inputs.cpu_s, first_call_s]))
"""


def test_calls_that_pay_for_the_other_side_do_not_count(newest: ReleaseEnvironment) -> None:
    """The first calls of the turn cost 8 ms more, and are within the time that does not count."""
    done = newest.run("-c", TURNS)
    assert done.returncode == 0, done.stderr
    exact, of_inputs = map(json.loads, done.stdout.splitlines())
    # Four calls settle: 32 ms. Then ten samples of two calls take 40 ms.
    assert exact == [0.002, 20, 24, True]
    # The copy of inputs after each call is the suite's: it makes thousands of page faults.
    calls, faults, cpu_s, first_call_s = of_inputs
    assert 1 <= calls <= 5
    assert faults < 100 * calls
    assert cpu_s < 0.002 * calls
    assert first_call_s < 0.05


def test_a_request_that_is_none_ends_with_status_2(newest: ReleaseEnvironment) -> None:
    done = newest.run("-m", "torchcompile_suite.engine.launches", input="{}")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("torchcompile_suite.engine.launches: not a request")


def test_warm_launches_reuse_what_the_cold_one_compiled(compiled: Measured) -> None:
    first = compiled.measurement
    assert first.outcome.ok, first.outcome
    assert [launch.kind for launch in first.launches] == ["cold", "warm"]
    assert {launch.process for launch in first.launches} == {"fresh"}
    assert all(launch.interference for launch in first.launches)
    cold_s, *warm_s = (launch.warm_up_s[0] for launch in first.launches)
    assert min(warm_s) < cold_s
    assert len((compiled.folder / "r.jsonl").read_text().splitlines()) == 1


@pytest.mark.nightly
def test_it_stops_when_it_is_precise(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    # Three launches meet this target, unless the host moves the processors: then it takes three at
    # the near place. tests/test_alone.py has the stopping rule.
    enough = {"launches": None, "precision": 10, "budget_s": 300}
    measurement = measure(newest, tmp_path, "well", "eager", **enough)
    assert measurement.outcome.ok, measurement.outcome
    assert measurement.stopped == "precise"
    assert statistics.precise(measurement.launches, 10)
    assert not statistics.precise(measurement.launches[:-1], 10)


def test_each_launch_pays_for_importing_the_compiler(compiled: Measured, eager: Measured) -> None:
    seconds = {launch.compiler_import_s for launch in compiled.measurement.launches}
    assert len(seconds) > 1, "each launch has its own time"
    assert min(seconds) > 0.3, "an import of what is imported already takes microseconds"
    assert eager.measurement.launches[0].compiler_import_s == 0


def test_a_busy_machine_is_seen_and_the_launch_repeated(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    """While others use all processors, launches are repeated, and none becomes a number."""
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        measurement = measure(newest, tmp_path, "well", "eager", launches=1, repeats=1)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert measurement.outcome.status is Status.UNSETTLED
    assert measurement.outcome.reason.startswith(TOO_BUSY)
    first, last = measurement.launches
    # tests/test_alone.py has more repeats.
    # Other guests of the host may take more than the burners.
    assert re.search("other (processes|guests of the host) took", first.disturbed)
    assert last.pairs_s, "its figures are kept"


@pytest.mark.nightly
def test_what_is_recorded_is_reused_and_what_failed_is_repeated(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    runs = [tmp_path / name for name in "abc"]
    for run in runs:
        run.mkdir()
    record = str(tmp_path / "records.jsonl")
    failed = measure(newest, runs[0], "well", "eager", record=record, launch_limit_s=0.01)
    assert failed.outcome.status is Status.TIMEOUT
    mended = measure(newest, runs[1], "well", "eager", record=record, reuse=True)
    assert mended.outcome.ok
    reused = measure(newest, runs[2], "well", "eager", record=record, reuse=True)
    assert reused == mended


def test_eager_against_eager_is_one(eager: Measured) -> None:
    pairs_s = [pair for launch in eager.measurement.launches for pair in launch.pairs_s]
    # The fastest turns, and a wide limit: other processes slow calls of ten microseconds.
    eager_s, mode_s = map(min, zip(*pairs_s, strict=True))
    assert 0.5 < mode_s / eager_s < 2


@pytest.mark.parametrize(
    ("workload", "mode", "status", "words"),
    [
        pytest.param("wrong", "default", Status.WRONG_RESULT, "exceeds", marks=pytest.mark.nightly),
        ("greedy", "eager", Status.OUT_OF_MEMORY, "allocate"),
        ("suicidal", "eager", Status.CRASH, "SIGSEGV"),
        pytest.param("killed", "eager", Status.CRASH, "SIGKILL", marks=pytest.mark.nightly),
        ("raising", "eager", Status.CRASH, "the <b>first</b> line"),
        ("uncompilable", "default", Status.COMPILE_ERROR, "this cannot be compiled"),
        pytest.param(
            "disabled",
            "default",
            Status.UNSUPPORTED,
            "nothing of it was compiled: 0 graphs, because",
            marks=pytest.mark.nightly,
        ),
        ("well", "no-such-mode", Status.UNSUPPORTED, "no mode 'no-such-mode'"),
        ("no-such-workload", "eager", Status.UNSUPPORTED, "no workload 'no-such-workload'"),
    ],
)
def test_every_failure_is_an_outcome_with_a_reason(
    newest: ReleaseEnvironment,
    tmp_path: Path,
    workload: str,
    mode: str,
    status: Status,
    words: str,
) -> None:
    measured = measure(newest, tmp_path, workload, mode)
    assert measured.outcome.status is status, measured.outcome
    assert words in measured.outcome.reason
    assert "\n" not in measured.outcome.reason
    assert not any(launch.pairs_s for launch in measured.launches)


def test_a_launch_that_hangs_is_ended_with_all_it_started(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    measured = measure(newest, tmp_path, "slow", "eager", launch_limit_s=15)
    assert measured.outcome.status is Status.TIMEOUT
    assert "more than 15 s" in measured.outcome.reason
    assert "build" in measured.outcome.reason, "it had begun what hangs"
    wait_until(lambda: not processes_named(SLEEP))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("release", "limit_s"), [(NEWEST, 30), (NEWEST, 45), ("v2.4", 45), ("v2.9", 45)]
)
def test_a_compile_that_does_not_end_says_how_far_it_came(
    make_environment: Callable[[str], ReleaseEnvironment],
    tmp_path: Path,
    release: str,
    limit_s: int,
) -> None:
    environment = make_environment(release)
    measured = measure(environment, tmp_path, "unrolled", "default", launch_limit_s=limit_s)
    assert measured.outcome.status is Status.TIMEOUT
    told = re.fullmatch(
        rf"a cold launch took more than {limit_s} s: the last \d+ s in compile, at the end in "
        r"(.+?)( \(for at least \d+ s\))?(; so far 12000 operators(, \d+ kernels?)?)?",
        measured.outcome.reason,
    )
    assert told, measured.outcome
    # Dynamo tells the number of operators when it has captured all; then it writes its guards.
    assert told[3] or told[1] == "Dynamo's capture"


def test_a_killed_run_leaves_no_process(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    process = start(newest, tmp_path, "slow", "eager")
    wait_until(lambda: processes_named(SLEEP))
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not processes_named(SLEEP) and not processes_named(str(tmp_path)))
    assert not (tmp_path / "r.jsonl").exists()


def test_no_compiler_is_a_compile_error_that_names_the_remedy(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    variables = {"PATH": str(newest.folder / "bin"), "CXX": "no-such-compiler"}
    measured = measure(newest, tmp_path, "well", "default", variables=variables)
    assert measured.outcome.status is Status.COMPILE_ERROR
    assert "apt-get install g++" in measured.outcome.reason


@pytest.mark.parametrize("release", releases("v2.4"))
def test_a_mode_that_captures_nothing_says_what_dynamo_says(
    make_environment: Callable[[str], ReleaseEnvironment], tmp_path: Path, release: str
) -> None:
    """As bfloat16 on a GPU before Ampere, which runs in eager without a word."""
    environment = make_environment(release)
    outcome = one_launch(environment, tmp_path, "skipped", "default", backend="skipping").outcome
    assert outcome.status is Status.UNSUPPORTED
    assert "0 graphs, because BF16 is not supported" in outcome.reason


def test_cuda_without_a_gpu_is_not_settled(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    measured = measure(newest, tmp_path, "well", "eager", device="cuda")
    if measured.outcome.ok:
        pytest.skip("this machine has a GPU")
    assert measured.outcome.status is Status.CRASH
    assert not measured.outcome.settled, "another driver would mend it"
    assert "finds no usable GPU" in measured.outcome.reason
    assert {launch.process for launch in measured.launches} == {"fresh"}
