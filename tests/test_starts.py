"""Cold starts: how whole processes take turns, what is said of them, and real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torchcompile_suite import matrix
from torchcompile_suite.analysis import starts as of_starts
from torchcompile_suite.analysis import statistics, summaries
from torchcompile_suite.analysis.payoff import Payoff
from torchcompile_suite.analysis.summary import row
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import interference, starts, turns
from torchcompile_suite.engine.launches import heap_state
from torchcompile_suite.launch import caches
from torchcompile_suite.launch.messages import (
    CACHE,
    PREPARED,
    SERVICE,
    Asked,
    Ended,
    Finish,
    FirstResult,
    Go,
    Imported,
    Prepared,
    Said,
)
from torchcompile_suite.measurement import METHOD, OK, Launch, Measurement, Outcome, Started, Status
from torchcompile_suite.presentation.answers.common import NOTHING
from torchcompile_suite.presentation.answers.processes import starts as answer
from torchcompile_suite.request import Plan, Request
from torchcompile_suite.results.parsing import decode
from torchcompile_suite.results.records import Record

from .conftest import ReleaseEnvironment
from .examples import environment

CELL = Cell("resnet18", 1, "default", start="disk-cache")
PLAN = Plan(most_starts=2)
# The phases of a scripted process, in seconds.
PHASES_S = {"interpreter": 0.01, "imports": 0.02, "first call": 0.005}


class Scripted:
    """A process that prepares, or starts as a service. ``says`` can replace an answer."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        says: Callable[[str, object], Said | Exception | None],
    ) -> None:
        self.pid = os.getpid()
        self.module = module
        self.variables = dict(variables)
        self.order = json.loads(arguments[0]) if arguments else {}
        self.ended = 0
        self._says = says
        self._answer: Said | Exception = self._said("start")

    @property
    def side(self) -> str:
        if self.module != SERVICE:
            return "prepare"
        return "mode" if self.order["start"] else "eager"

    def _said(self, asked: object) -> Said | Exception:
        return self._says(self.side, asked) or self._usual(asked)

    def _usual(self, asked: object) -> Said:
        if self.module == SERVICE and asked == "start":
            now, ended_s = time.monotonic(), {}
            for name, seconds in PHASES_S.items():
                now += seconds
                ended_s[name] = now
            return FirstResult(ended_s)
        if isinstance(asked, Request):
            folder = Path(asked.cache_dir).parent
            made = Prepared(1, 7, "torch.a.loader", 1000)
            (folder / PREPARED).write_bytes(msgspec.json.encode(made))
            Path(asked.cache_dir, "kernel.so").write_bytes(b"code")
            return Imported()
        stages_s = {"build": 1.0, "compile": 20.0} if self.module != SERVICE else {}
        launch = Launch("warm", OK, stages_s=stages_s, environment=environment(), heap="default")
        return Ended(launch)

    def say(self, asked: Asked | Request) -> None:
        self._answer = self._said(asked)

    def hear(self, deadline: float) -> Said:
        if isinstance(self._answer, Exception):
            raise self._answer
        assert deadline > time.monotonic() - 1
        return self._answer

    def end(self) -> None:
        self.ended += 1


class Bench:
    """Launches of a cell in one folder, with scripted processes."""

    def __init__(self, tmp_path: Path, cell: Cell = CELL, plan: Plan = PLAN) -> None:
        self.folder, self.workspace = tmp_path / "cell", tmp_path / "work"
        self.workspace.mkdir()
        self.request = Request(cell, "cold", str(self.folder), plan)
        self.made: list[Scripted] = []
        # What each service found in its cache folder when it started.
        self.found: list[tuple[str, list[str]]] = []

    def launch(
        self, says: Callable[[str, object], Said | Exception | None] = lambda _side, _asked: None
    ) -> Launch:
        def spawn(
            log: Path, module: str, variables: Mapping[str, str], arguments: Sequence[str]
        ) -> Scripted:
            assert log.parent == self.workspace
            process = Scripted(module, arguments, variables, says)
            self.made.append(process)
            if module == SERVICE:
                cache = Path(variables[caches.INDUCTOR])
                names = sorted(file.name for file in cache.iterdir())
                self.found.append((process.side, names))
                (cache / "left.so").write_bytes(b"more code")
            return process

        return starts.launch(spawn, self.request, self.workspace, 100)

    @property
    def sides(self) -> list[str]:
        return [process.side for process in self.made]


def test_a_launch_prepares_once_and_its_turns_are_whole_processes(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    launch = bench.launch()
    assert launch.outcome == OK
    assert bench.sides == ["prepare", "eager", "mode", "mode", "eager"]
    assert launch.stages_s["compile"] == 20.0
    assert launch.method == METHOD
    assert (launch.process, launch.heap) == ("fresh", "default")
    assert len(launch.pairs_s) == 2
    assert launch.start is not None
    assert launch.eager_start is not None
    assert (launch.start.artefact_bytes, launch.start.loader) == (1000, "torch.a.loader")
    assert (launch.eager_start.artefact_bytes, launch.eager_start.loader) == (None, "")
    assert launch.calibration_s is not None
    assert launch.interference is not None
    assert launch.environment is not None
    assert all(process.ended for process in bench.made)
    again = bench.launch()
    assert bench.sides[5:] == ["mode", "eager", "eager", "mode"], "the other side starts first"
    assert "compile" not in again.stages_s


def test_each_service_is_told_what_it_needs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.launch()
    eager, mode = bench.made[1].order, bench.made[2].order
    assert (eager["start"], eager["loader"]) == ("", "")
    assert (mode["start"], mode["loader"]) == ("disk-cache", "torch.a.loader")
    assert eager["seed"] == mode["seed"] == 7
    assert Path(mode["folder"], PREPARED).exists()


@pytest.mark.parametrize("start", matrix.STARTS)
def test_only_the_disk_cache_is_kept_from_process_to_process(tmp_path: Path, start: str) -> None:
    bench = Bench(tmp_path, msgspec.structs.replace(CELL, start=start))
    bench.launch()
    first, second = (names for side, names in bench.found if side == "mode")
    if start == "disk-cache":
        assert first == ["kernel.so", caches.TEMPORARY]
        assert second == ["kernel.so", "left.so", caches.TEMPORARY]
    else:
        assert first == second == [caches.TEMPORARY]
    assert [names for side, names in bench.found if side == "eager"] == [[caches.TEMPORARY]] * 2
    assert [file for file in bench.workspace.iterdir() if file.is_dir()] == [], "nothing is left"


def test_the_phases_add_up_to_the_time_to_the_first_result(tmp_path: Path) -> None:
    launch = Bench(tmp_path).launch()
    assert launch.start is not None
    assert list(launch.start.phases_s) == list(PHASES_S)
    for name, seconds in list(PHASES_S.items())[1:]:
        assert launch.start.phases_s[name] == pytest.approx(seconds, rel=1e-3)
    assert launch.warm_up_s == [launch.start.phases_s["first call"]]


def test_pairs_end_with_the_time_or_with_their_number(tmp_path: Path) -> None:
    plan = Plan(starts_s=0.0, most_starts=9)
    assert len(Bench(tmp_path, plan=plan).launch().pairs_s) == 1
    (tmp_path / "b").mkdir()
    plan = Plan(starts_s=100.0, most_starts=3)
    assert len(Bench(tmp_path / "b", plan=plan).launch().pairs_s) == 3


UNSUPPORTED = Outcome(Status.UNSUPPORTED, "torch 2.4.1 has no package")


@pytest.mark.parametrize(
    ("side", "asked", "answer", "status"),
    [
        ("prepare", Go, Ended(Launch("cold", UNSUPPORTED)), Status.UNSUPPORTED),
        ("prepare", Request, turns.TimedOut(), Status.TIMEOUT),
        ("eager", str, turns.Lost(Outcome(Status.CRASH, "killed")), Status.CRASH),
        ("mode", str, Ended(Launch("cold", Outcome(Status.COMPILE_ERROR, "no"))),
         Status.COMPILE_ERROR),
        ("mode", Finish, Ended(Launch("cold", Outcome(Status.WRONG_RESULT, "no"))),
         Status.WRONG_RESULT),
    ],
)  # fmt: skip
def test_a_process_that_fails_ends_the_launch(
    tmp_path: Path, side: str, asked: type, answer: Said | Exception, status: Status
) -> None:
    bench = Bench(tmp_path)
    launch = bench.launch(
        lambda of, what: answer if of == side and isinstance(what, asked) else None
    )
    assert launch.outcome.status is status
    assert launch.pairs_s == []
    assert all(process.ended for process in bench.made)
    # What failed to be prepared is prepared again.
    assert bench.launch().outcome == OK


def test_processes_of_a_start_are_users_processes() -> None:
    assert heap_state(CELL) == "default"


def test_what_a_process_and_its_children_use_is_not_that_of_others() -> None:
    """A second of work in a child of the process, which has ended and is waited for."""
    busy = (
        "import subprocess, sys; work = 'import time\\nwhile time.process_time() < 1: pass';"
        "subprocess.run([sys.executable, '-c', work]); print(flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert interference.of_tree(process.pid) > 0.95
    assert interference.of_processes({process.pid}) < 0.9
    process.communicate(b"\n")
    watch = interference.Watch()
    assert watch.shares() is None, "nothing ran"
    watch.begin()
    watch.end(lambda: interference.of_tree(os.getpid()))
    watch.begin()
    watch.end(lambda: interference.of_tree(process.pid))
    assert watch.shares() is None, "a process that is gone has no times"


def started(start: str, eager: float, mode: float, found: int | None = None) -> Measurement:
    """Three launches of a cold start, some per cent apart."""
    phases_s = {"imports": 1.0, "first call": mode - 1.0}
    launches = [
        Launch(
            "cold" if wobble == 1.0 else "warm",
            OK,
            pairs_s=[(eager * wobble, mode * wobble)],
            warm_up_s=[mode - 1.0],
            method=METHOD,
            environment=environment(),
            start=Started(phases_s, found, "torch.a.loader" if found else ""),
            eager_start=Started({"imports": 1.0, "first call": eager - 1.0}),
        )
        for wobble in (1.0, 1.01, 0.99)
    ]
    cell = Cell("resnet18", 1, "default", start=start)  # type: ignore[arg-type]
    return Measurement(cell, OK, launches, "2026-11-23T00:00:00+00:00", 60.0, "fixed")


def failed(start: str) -> Measurement:
    cell = Cell("resnet18", 1, "default", start=start)  # type: ignore[arg-type]
    launches = [Launch("cold", UNSUPPORTED, environment=environment())]
    return Measurement(cell, UNSUPPORTED, launches, "2026-11-23T00:00:00+00:00", 1.0)


def of(*measurements: Measurement) -> list[Record]:
    return [Record("box", "12345678", "env", one, "2.9.1") for one in measurements]


def test_a_start_has_no_compile_cost_but_all_other_figures() -> None:
    measurement = started("disk-cache", 2.0, 5.0)
    made = row(of(measurement)[0])
    assert made.latency_s is not None
    assert made.latency_s.value == pytest.approx(5.0, rel=1e-3)
    assert (made.cold_compile_s, made.warm_compile_s, made.break_even_calls) == (None, None, None)
    # As a record of a file, and as its summary.
    line = msgspec.json.encode(measurement)
    assert decode(line) == measurement
    condensed = summaries.condensed(measurement)
    assert statistics.ratio_of(condensed.launches[0]) == pytest.approx(2.5)
    assert row(of(condensed)[0]) == made


def test_the_answer_names_the_fastest_way_and_every_other_one() -> None:
    found = answer(
        of(
            started("uncached", 2.0, 30.0),
            started("disk-cache", 2.0, 5.0, 4_000_000),
            failed("carried-cache"),
            started("aot-package", 2.0, 1.5, 50_000_000),
        )
    )
    assert found.sentence.startswith("resnet18 starts fastest with aot-package (1.50 [")
    assert "eager: 2.00 [" in found.sentence
    assert "0.75 [0.75, 0.75] times eager's time" in found.sentence
    assert "; with nothing cached 30.00 [" in found.sentence
    sheet = found.sheet
    assert [line[2] for line in sheet.lines] == [
        "eager", "uncached", "disk-cache", "carried-cache", "aot-package",
    ]  # fmt: skip
    assert all(len(line) == len(sheet.columns) for line in sheet.lines)
    assert "unsupported: torch 2.4.1 has no package" in sheet.lines[3]
    assert sheet.lines[4][sheet.columns.index("found MB")] == "50.0"
    assert sheet.lines[4][sheet.columns.index("imports s")] == "1.00"


def test_the_answer_does_not_claim_what_cannot_be_told() -> None:
    slower = of_starts.models(of(started("disk-cache", 2.0, 5.0)))[0]
    assert slower.payoff is Payoff.LOSS
    assert "starts fastest in eager" in answer(of(started("disk-cache", 2.0, 5.0))).sentence
    (close,) = of_starts.models(
        of(started("disk-cache", 2.0, 5.0), started("precompile", 2.0, 5.0))
    )
    assert [way.row.cell.start for way in close.fastest] == ["disk-cache", "precompile"]
    # Eager's seconds are those beside the fastest way, so that they and the ratio go together.
    (drifted,) = of_starts.models(
        of(started("uncached", 3.0, 9.0), started("disk-cache", 2.0, 5.0))
    )
    assert drifted.eager_s is not None
    assert drifted.eager_s.value == pytest.approx(2.0, rel=1e-3)
    # No gain of 5 %, and perhaps a loss of a third: not as fast.
    (open_,) = of_starts.models(of(spread(started("disk-cache", 2.0, 2.2), 1.08)))
    assert open_.payoff is Payoff.NONE
    said = answer(of(spread(started("disk-cache", 2.0, 2.2), 1.08))).sentence
    assert "resnet18 starts no faster with disk-cache (" in said
    assert answer([]).sentence == NOTHING
    assert "no start has a number" in answer(of(failed("precompile"))).sentence


def spread(measured: Measurement, factor: float) -> Measurement:
    """The same with a warm launch whose mode takes that many times as long."""
    *launches, last = measured.launches
    eager_s, mode_s = last.pairs_s[0]
    launches.append(msgspec.structs.replace(last, pairs_s=[(eager_s, mode_s * factor)]))
    return msgspec.structs.replace(measured, launches=launches)


def alone(measured: Measurement) -> Measurement:
    return msgspec.structs.replace(measured, launches=measured.launches[:1])


@pytest.mark.parametrize(
    ("ways", "first", "pays"),
    [
        # What surely beats eager comes before what seems faster.
        (
            [spread(started("aot-package", 2.0, 1.6), 1.3), started("disk-cache", 2.0, 1.8)],
            "disk-cache",
            Payoff.GAIN,
        ),
        (
            [alone(started("aot-package", 2.0, 1.6)), started("disk-cache", 2.0, 1.8)],
            "disk-cache",
            Payoff.GAIN,
        ),
        # What may beat eager comes before what surely does not.
        (
            [started("disk-cache", 2.0, 2.2), spread(started("precompile", 2.0, 2.4), 1.3)],
            "precompile",
            Payoff.UNKNOWN,
        ),
        (
            [started("disk-cache", 2.0, 2.2), started("precompile", 2.0, 2.4)],
            "disk-cache",
            Payoff.LOSS,
        ),
    ],
)
def test_what_is_sure_of_a_way_comes_first(
    ways: list[Measurement], first: str, pays: Payoff
) -> None:
    (model,) = of_starts.models(of(*ways))
    assert model.fastest[0].row.cell.start == first
    assert model.payoff is pays


def test_records_of_strangers_do_not_break_the_answer() -> None:
    strange = started("uncached", 2.0, 3.0)
    launches = [
        msgspec.structs.replace(one, start=None, eager_start=Started({"<b>": 1.0}))
        for one in strange.launches
    ]
    found = answer(of(msgspec.structs.replace(strange, launches=launches)))
    assert not any("<b>" in column for column in found.sheet.columns)
    assert all(len(line) == len(found.sheet.columns) for line in found.sheet.lines)


# --- with a real release -----------------------------------------------------------------------

WORKLOADS = Path(__file__).with_name("workloads_that_fail.py")
NIGHTLY = pytest.mark.nightly


def real(
    environment: ReleaseEnvironment, folder: Path, workload: str, **cell: Any
) -> tuple[Launch, Path]:
    of = Cell(workload, 1, **{"mode": "default", **cell})
    cache = folder / "cell"
    request = Request(of, "cold", str(cache), Plan(most_starts=1))
    return environment.launch(request, WORKLOADS), cache


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "start",
    [
        start if start == "precompile" else pytest.param(start, marks=NIGHTLY)
        for start in matrix.STARTS
    ],
)
def test_a_real_service_starts(newest: ReleaseEnvironment, tmp_path: Path, start: str) -> None:
    launch, folder = real(newest, tmp_path, "well", start=start)
    assert launch.outcome.ok, launch.outcome
    ((eager_s, mode_s),) = launch.pairs_s
    assert 0.2 < eager_s < mode_s + 60
    assert launch.start is not None
    assert launch.eager_start is not None
    for seconds, of_side in ((eager_s, launch.eager_start), (mode_s, launch.start)):
        # The phases are the whole time, but for the way of the last message.
        assert sum(of_side.phases_s.values()) == pytest.approx(seconds, rel=0.05)
    assert launch.accuracy is not None
    assert launch.accuracy.reference == "float64"
    assert launch.environment is not None
    assert launch.environment.torch.split("+")[0] == newest.version
    assert (folder / CACHE).is_dir()
    if start == "uncached":
        assert launch.start.artefact_bytes is None
        assert launch.start.phases_s["first call"] > 10 * launch.eager_start.phases_s["first call"]
    else:
        assert launch.start.artefact_bytes
    if start == "aot-package":
        assert "model" not in launch.start.phases_s, "a package needs no code of the model"
        assert "compiler" not in launch.start.phases_s


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("workload", "cell", "status", "reason"),
    [
        pytest.param("wrong", {}, Status.WRONG_RESULT, "relative error", marks=NIGHTLY),
        pytest.param("well", {"dtype": "bfloat16"}, Status.UNSUPPORTED, "bfloat16", marks=NIGHTLY),
        pytest.param("well", {"mode": "eager"}, Status.UNSUPPORTED, "eager", marks=NIGHTLY),
        pytest.param("uncompilable", {}, Status.COMPILE_ERROR, "cannot be", marks=NIGHTLY),
        pytest.param("raising", {}, Status.CRASH, "line", marks=NIGHTLY),
        ("killed", {}, Status.CRASH, "SIGKILL"),
        pytest.param("nobody", {}, Status.UNSUPPORTED, "no workload", marks=NIGHTLY),
    ],
)
def test_a_real_start_that_fails_says_why(
    newest: ReleaseEnvironment,
    tmp_path: Path,
    workload: str,
    cell: dict[str, str],
    status: Status,
    reason: str,
) -> None:
    launch, _ = real(newest, tmp_path, workload, start="uncached", **cell)
    assert launch.outcome.status is status, launch.outcome
    assert reason in launch.outcome.reason
    assert launch.pairs_s == []


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("start", ["carried-cache", "precompile"])
def test_what_an_old_release_lacks_is_unsupported(
    make_environment: Callable[[str], ReleaseEnvironment], tmp_path: Path, start: str
) -> None:
    oldest = make_environment("v2.4")
    launch, _ = real(oldest, tmp_path, "well", start=start)
    assert launch.outcome.status is Status.UNSUPPORTED, launch.outcome
    assert oldest.version in launch.outcome.reason
    assert launch.environment is not None, "the outcome is one of a release"


@pytest.mark.slow
def test_a_service_imports_nothing_of_the_suite_but_the_models(newest: ReleaseEnvironment) -> None:
    code = (
        "import sys, torchcompile_suite.launch.service;"
        "print(sorted(name for name in sys.modules if name.startswith('torchcompile_suite')));"
        "print('torch' in sys.modules, 'msgspec' in sys.modules)"
    )
    done = newest.run("-c", code)
    assert done.returncode == 0, done.stderr
    names, others = done.stdout.strip().splitlines()
    assert eval(names) == [
        "torchcompile_suite",
        "torchcompile_suite._version",
        "torchcompile_suite.host",
        "torchcompile_suite.host.orphans",
        "torchcompile_suite.launch",
        "torchcompile_suite.launch.service",
    ]
    assert others == "False False"


DRAWN = """
import sys, tempfile
import torch
from torchcompile_suite.cell import Cell
from torchcompile_suite.launch.build import build
from torchcompile_suite.launch.service import Service
from torchcompile_suite.launch.subject import SEED

prepared = build(Cell("drawn", 1, "default"))
order = {"workload": "drawn", "seed": SEED, "batch_size": 1, "device": "cpu", "start": ""}
with tempfile.TemporaryDirectory() as order["folder"]:
    torch.save(prepared.module.state_dict(), order["folder"] + "/weights.pt")
    module = Service(order).model()
print(torch.equal(module(*prepared.inputs), prepared.module(*prepared.inputs)))
"""


@pytest.mark.slow
def test_a_service_draws_the_constants_that_were_drawn_before(newest: ReleaseEnvironment) -> None:
    variables = newest.variables(TORCHCOMPILE_SUITE_WORKLOADS=str(WORKLOADS))
    done = newest.run("-c", DRAWN, env=variables)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_every_loader_is_one_that_something_is_made_for() -> None:
    """`prepare` names the loaders; it imports torch, so it is only read."""
    import torchcompile_suite
    from torchcompile_suite.launch import service

    folder = Path(torchcompile_suite.__file__).parent
    text = (folder / "launch" / "prepare.py").read_text()
    assert service.LOADERS
    for name in service.LOADERS:
        assert f'return "{name}"' in text, name
    assert set(service.PACKAGES) <= service.LOADERS.keys()
    assert starts.MEASURING != SERVICE
