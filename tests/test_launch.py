"""Launches and sessions, for real: torch of the newest release, real compiles, real failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import METHOD, Launch, Measurement, Status
from torchcompile_suite.launch import caches

from .conftest import ReleaseEnvironment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WORKLOADS = Path(__file__).with_name("workloads_that_fail.py")

# Measures one cell in a session of its own, as a benchmark process of ASV does.
MEASURE = """
import json, sys
from pathlib import Path
import msgspec
from torchcompile_suite.measuring import processes
from torchcompile_suite.cell import Cell, Plan
from torchcompile_suite.measuring.session import Session
from torchcompile_suite.measuring.settings import Settings

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    if request.pop("preload", True):
        processes.preload([])
    record = Path(request.pop("record"))
    workload, mode = request.pop("workload"), request.pop("mode")
    plan = Plan(warm_up_limit_s=1, min_pairs=5, min_timed_s=0.1, max_timed_s=1)
    request.setdefault("launches", 3)
    # Other tests run beside this one.
    request.setdefault("repeats", 0)
    session = Session(Path.cwd(), Settings(record=record, plan=plan, **request))
    measurement = session.measure(Cell(workload, 1, mode))
    print(msgspec.json.encode(measurement).decode())
"""


def start(
    environment: ReleaseEnvironment, folder: Path, workload: str, mode: str, **settings: Any
) -> subprocess.Popen[str]:
    variables = environment.variables(
        TORCHCOMPILE_SUITE_WORKLOADS=str(WORKLOADS), **settings.pop("variables", {})
    )
    request = {"workload": workload, "mode": mode, "record": str(folder / "r.jsonl"), **settings}
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
    out, err = process.communicate(timeout=800)
    assert process.returncode == 0, err
    return msgspec.json.decode(out.splitlines()[-1], type=Measurement)


def one_launch(
    environment: ReleaseEnvironment, folder: Path, workload: str, mode: str
) -> subprocess.CompletedProcess[str]:
    request = {
        "cell": {"workload": workload, "batch_size": 1, "mode": mode},
        "kind": "cold",
        "cache_dir": str(folder / "cache"),
        "plan": {"min_pairs": 5, "min_timed_s": 0.5, "max_timed_s": 2.0},
        "schema": 1,
    }
    return environment.run(
        "-m",
        "torchcompile_suite.launch",
        input=json.dumps(request),
        env=environment.variables(TORCHCOMPILE_SUITE_WORKLOADS=str(WORKLOADS)),
    )


def processes_named(text: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if text in command and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def test_json_in_json_out(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    """A fresh process writes one launch and nothing else to stdout, whatever prints in it."""
    done = one_launch(newest, tmp_path, "chatty", "default")
    assert done.returncode == 0, done.stderr
    launch = msgspec.json.decode(done.stdout, type=Launch)
    assert launch.outcome.ok, launch.outcome
    assert launch.process == "fresh"
    assert len(launch.pairs_s) >= 5
    assert launch.method == METHOD
    assert launch.calibration_s is not None
    assert 1e-5 < launch.calibration_s < 1e-2
    assert launch.environment is not None
    assert launch.environment.torch.split("+")[0] == newest.version
    assert launch.accuracy is not None
    assert launch.accuracy.reference == "float64"
    assert launch.warm_up_s[0] > 10 * launch.warm_up_s[-1], "the first call compiles"
    assert "on descriptor 1" in done.stderr
    assert any((tmp_path / "cache").rglob("*.so")), "Inductor compiled into the cache it was given"
    headers = tmp_path / "cache" / caches.TEMPORARY
    assert any(headers.rglob("*.gch")), "and what it precompiles for all models as well"


TURNS = """
import time
from torchcompile_suite.cell import Plan
from torchcompile_suite.launch import device, measure
from torchcompile_suite.launch.calibration import Yardstick

log = []

def caller(name, usual_s):
    def call():
        after_the_other = name not in log[-3:] or len(set(log[-3:])) > 1
        log.append(name)
        time.sleep(usual_s + 0.008 * after_the_other)
    return call

for usual_s in (0.002, 0.25):
    log.clear()
    plan = Plan(settle_s=0.02, turn_s=0.04, min_pairs=3, min_timed_s=0.0)
    turn = measure.Turn(device.get("cpu"), plan, usual_s, usual_s)
    calls = [caller(name, usual_s) for name in ("eager", "mode")]
    with Yardstick(1) as yardstick:
        pairs = measure._pairs(*calls, turn, plan, yardstick)
    print(len(pairs), len(log), log[:1] + log[-1:], min(map(min, pairs)), max(map(max, pairs)))
"""


def test_calls_that_pay_for_the_other_mode_do_not_count(newest: ReleaseEnvironment) -> None:
    """Unless they are so long that it is nothing to them."""
    done = newest.run("-c", TURNS)
    assert done.returncode == 0, done.stderr
    short, long = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    assert short[0] == "3"
    least, most = (float(each) for each in short[2].split("] ")[1].split())
    assert 0.002 <= least <= most < 0.008, "none of 10 ms"
    # The order alternates, and one call is a turn.
    assert long[:2] == ["3", "6"]
    assert long[2].startswith("['eager', 'mode']")


def test_a_request_that_is_none_ends_with_status_2(newest: ReleaseEnvironment) -> None:
    done = newest.run("-m", "torchcompile_suite.launch", input="{}")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("torchcompile_suite.launch: not a request")


def test_a_session_measures_once_and_remembers(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    first = measure(newest, tmp_path, "well", "default")
    assert first.outcome.ok, first.outcome
    # More than three where something else had the processors meanwhile, as another test has.
    assert len(statistics.counted(first.launches)) == 3
    kinds = [launch.kind for launch in first.launches]
    assert kinds == ["cold", *["warm"] * (len(kinds) - 1)]
    assert {launch.process for launch in first.launches} == {"forked"}
    assert all(launch.preloaded == [] for launch in first.launches)
    cold, warm, *_ = (launch.warm_up_s[0] for launch in first.launches)
    assert warm < cold, "the warm launch finds what the cold one compiled"
    # The very same measurement, at once, although the settings now forbid any launch.
    start_s = time.monotonic()
    again = measure(newest, tmp_path, "well", "default", preload=False, launch_limit_s=0.001)
    assert again == first
    assert time.monotonic() - start_s < 5
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1


def test_a_session_stops_when_it_is_precise(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    found = measure(newest, tmp_path, "well", "eager", launches=None, precision=0.9)
    assert found.outcome.ok, found.outcome
    assert found.stopped == "precise"
    assert 3 <= len(found.launches) < 12


def test_each_launch_pays_for_importing_the_compiler(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    found = measure(newest, tmp_path, "well", "default")
    seconds = {launch.compiler_import_s for launch in found.launches}
    assert len(seconds) > 1, "each took its own time"
    assert min(seconds) > 0.3
    eager = measure(newest, tmp_path, "well", "eager")
    assert eager.launches[0].compiler_import_s == 0


def test_a_busy_machine_is_seen_and_the_launch_repeated(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    """Two processes burn the processors: the launches are made again, and kept with the reason."""
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        found = measure(newest, tmp_path, "well", "eager", launches=1, repeats=3)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert found.outcome.ok, found.outcome
    assert len(found.launches) == 4, "three repeats and the one that counts"
    assert all("other processes took" in one.disturbed for one in found.launches[:3])
    assert found.launches[3].disturbed == ""


def test_a_session_reuses_what_is_recorded_and_repeats_what_failed(
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
    reused = measure(newest, runs[2], "well", "eager", record=record, reuse=True, preload=False)
    assert reused == mended


def test_eager_against_eager_is_one(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    measured = measure(newest, tmp_path, "well", "eager")
    ratios = [mode / eager for launch in measured.launches for eager, mode in launch.pairs_s]
    assert 0.8 < sorted(ratios)[len(ratios) // 2] < 1.25


@pytest.mark.parametrize(
    ("workload", "mode", "status", "said"),
    [
        ("wrong", "default", Status.WRONG_RESULT, "exceeds"),
        ("greedy", "eager", Status.OUT_OF_MEMORY, "allocate"),
        ("suicidal", "eager", Status.CRASH, "SIGSEGV"),
        ("killed", "eager", Status.CRASH, "SIGKILL"),
        ("raising", "eager", Status.CRASH, "the <b>first</b> line"),
        ("uncompilable", "default", Status.COMPILE_ERROR, "this cannot be compiled"),
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
    said: str,
) -> None:
    measured = measure(newest, tmp_path, workload, mode)
    assert measured.outcome.status is status, measured.outcome
    assert said in measured.outcome.reason
    assert "\n" not in measured.outcome.reason
    assert not any(launch.pairs_s for launch in measured.launches)


def test_a_launch_that_hangs_is_ended_with_all_it_started(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    measured = measure(newest, tmp_path, "slow", "eager", launch_limit_s=5)
    assert measured.outcome.status is Status.TIMEOUT
    assert "more than 5 s" in measured.outcome.reason
    assert processes_named("sleep 4321") == []


def test_a_killed_session_leaves_no_process(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    process = start(newest, tmp_path, "slow", "eager")
    deadline = time.monotonic() + 120
    while not processes_named("sleep 4321"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while processes_named("sleep 4321") or processes_named(str(tmp_path)):
        assert time.monotonic() < deadline, "something outlived the session"
        time.sleep(0.2)
    assert not (tmp_path / "r.jsonl").exists()


def test_no_compiler_is_a_compile_error_that_names_the_remedy(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    variables = {"PATH": str(newest.folder / "bin"), "CXX": "no-such-compiler"}
    measured = measure(newest, tmp_path, "well", "default", variables=variables)
    assert measured.outcome.status is Status.COMPILE_ERROR
    assert "apt-get install g++" in measured.outcome.reason


def test_cuda_without_a_gpu_is_unsupported(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    measured = measure(newest, tmp_path, "well", "eager", device="cuda", preload=False)
    if measured.outcome.ok:
        pytest.skip("this machine has a GPU")
    assert measured.outcome.status is Status.UNSUPPORTED
    assert "GPU" in measured.outcome.reason or "CPU-only" in measured.outcome.reason
    assert {launch.process for launch in measured.launches} == {"fresh"}
