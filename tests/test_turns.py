"""How a launch drives its processes. The processes here are scripted; tests/test_launch.py has real
ones."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import turns
from torchcompile_suite.host import probes
from torchcompile_suite.launch.messages import (
    Asked,
    Ended,
    Finish,
    Go,
    Imported,
    Ready,
    Said,
    Timed,
    Turn,
)
from torchcompile_suite.measurement import METHOD, OK, Launch, Outcome, Status
from torchcompile_suite.request import Plan, Request

CELL = Cell("resnet18", 1, "default")
PLAN = Plan(min_pairs=5, min_timed_s=0.0)


@pytest.fixture(autouse=True)
def _without_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's host may move the processors, and then a launch makes more pairs."""
    monkeypatch.setattr(probes, "read", lambda: None)


STEADY_S = {"eager": 0.02, "mode": 0.01}


class Scripted:
    """A process that answers at once. ``says`` can replace an answer.

    ``faults`` are those of a call; ``grows``: of the first turn's calls only.
    """

    def __init__(
        self,
        log: list[tuple[str, object]],
        says: Callable[[Asked | Request], Said | Exception | None] = lambda asked: None,
        steady_s: dict[str, float] = STEADY_S,
        faults: int = 0,
        heap: str = "settled",
        grows: bool = False,
        single_s: float | None = None,
    ) -> None:
        self.pid = os.getpid()
        self.ended = 0
        self._log = log
        self._says = says
        self._steady_s = steady_s
        self._faults = faults
        self._heap = heap
        self._grows = grows
        self._single_s = single_s
        self._answer: Said | Exception | None = None
        self.sides: tuple[str, ...] = ()

    def say(self, asked: Asked | Request) -> None:
        if isinstance(asked, Request):
            self.sides = asked.sides
        name = asked.side if isinstance(asked, Turn) else "+".join(self.sides)
        self._log.append((name, asked))
        self._answer = self._says(asked) or self._usual(asked)

    def _usual(self, asked: Asked | Request) -> Said:
        if isinstance(asked, Request):
            return Imported()
        if isinstance(asked, Go):
            return Ready({side: self._steady_s[side] for side in self.sides}, 1)  # type: ignore[misc]
        if isinstance(asked, Turn):
            faults, self._faults = self._faults, 0 if self._grows else self._faults
            return Timed(self._steady_s[asked.side], 4, 4 * faults, 0.01, 0.1, self._single_s)
        eager = 7 if "eager" in self.sides else None
        stages_s = {"build": 1.0, "turns": 2.0}
        return Ended(
            Launch(
                "warm", OK, stages_s=stages_s, heap=self._heap, eager_peak_memory_bytes=eager,  # type: ignore[arg-type]
                peak_memory_bytes=9,
            )
        )  # fmt: skip

    def hear(self, deadline: float) -> Said:
        if isinstance(self._answer, Exception):
            raise self._answer
        assert self._answer is not None
        assert deadline > time.monotonic() - 1
        return self._answer

    def end(self) -> None:
        self.ended += 1


def launch(
    tmp_path: Path, cell: Cell = CELL, plan: Plan = PLAN, pids: Sequence[int] = (), **script: object
) -> tuple[Launch, list[tuple[str, object]], list[Scripted]]:
    log: list[tuple[str, object]] = []
    made: list[Scripted] = []

    def start(_: Path) -> Scripted:
        made.append(Scripted(log, **script))  # type: ignore[arg-type]
        if pids:
            made[-1].pid = pids[len(made) - 1]
        return made[-1]

    request = Request(cell, "warm", str(tmp_path), plan, heap="settled")
    return turns.launch(start, request, tmp_path, 100), log, made


def test_two_processes_take_turns_and_the_order_alternates(tmp_path: Path) -> None:
    found, log, made = launch(tmp_path)
    assert found.outcome == OK
    assert found.method == METHOD
    assert found.pairs_s == [(0.02, 0.01)] * 5, "eager first, whoever had the first turn"
    order = [name for name, asked in log if isinstance(asked, Turn)]
    assert order == ["eager", "mode", "mode", "eager"] * 2 + ["eager", "mode"]
    assert [process.sides for process in made] == [("eager",), ("mode",)]
    assert all(process.ended for process in made)


def test_timing_goes_on_until_the_ratio_is_precise_enough(tmp_path: Path) -> None:
    """Turns of the mode that differ by up to 20 %: five such pairs do not know the ratio to 3 %."""
    lengths = itertools.cycle([0.009, 0.0105, 0.0095, 0.011])

    def says(asked: object) -> Said | None:
        of_mode = isinstance(asked, Turn) and asked.side == "mode"
        return Timed(next(lengths), 4, 0, 0.01, 0.1, None) if of_mode else None

    plan = msgspec.structs.replace(PLAN, error=0.03)
    found, _, _ = launch(tmp_path, plan=plan, says=says)
    assert len(found.pairs_s) > PLAN.min_pairs
    assert statistics.launch_error(found.pairs_s) <= plan.error
    assert statistics.launch_error(found.pairs_s[:-1]) > plan.error
    ended, _, _ = launch(tmp_path, plan=msgspec.structs.replace(plan, max_timed_s=0.0), says=says)
    assert len(ended.pairs_s) == 1


def test_each_process_warms_up_alone(tmp_path: Path) -> None:
    _, log, _ = launch(tmp_path)
    kinds = [(name, type(asked)) for name, asked in log if not isinstance(asked, Turn)]
    assert kinds == [
        ("eager", Request), ("mode", Request), ("eager", Go), ("mode", Go),
        ("eager", Finish), ("mode", Finish),
    ]  # fmt: skip


def test_what_each_process_knows_is_in_the_launch(tmp_path: Path) -> None:
    found, _, _ = launch(tmp_path, faults=3)
    assert (found.eager_peak_memory_bytes, found.peak_memory_bytes) == (7, 9)
    assert found.stages_s["eager"] == 1.0
    assert found.stages_s["build"] == 1.0
    assert found.eager_paging is not None
    assert found.eager_paging.faults == 3
    assert found.eager_paging.kernel_share == 0.1
    assert found.calibration_s is not None


@pytest.mark.parametrize(("usual_s", "settle_s"), [(0.01, PLAN.settle_s), (0.25, 0.0)])
def test_only_short_calls_are_settled(tmp_path: Path, usual_s: float, settle_s: float) -> None:
    _, log, _ = launch(tmp_path, steady_s={"eager": usual_s, "mode": usual_s})
    asked = [turn for _, turn in log if isinstance(turn, Turn)]
    assert {(turn.settle_s, turn.turn_s, turn.count) for turn in asked} == {
        (settle_s, PLAN.turn_s, 1)
    }


def test_a_warm_up_that_ends_with_a_compile_does_not_last(tmp_path: Path) -> None:
    """The turns tell how long a call takes."""
    usual = Timed(0.005, 4, 0, 0.01, 0.1, None)
    found, log, _ = launch(
        tmp_path,
        says=lambda asked: usual if isinstance(asked, Turn) else None,
        steady_s={"eager": 0.005, "mode": 10.0},
    )
    asked = [turn for _, turn in log if isinstance(turn, Turn)]
    assert [(turn.settle_s, turn.count) for turn in asked[:2]] == [(0.0, 2), (0.0, 1)]
    assert {(turn.settle_s, turn.count) for turn in asked[2:]} == {(PLAN.settle_s, 2)}
    assert found.calls_a_sample == 2


@pytest.mark.parametrize(
    ("eager_s", "mode_s", "counts"),
    [(1e-4, 2e-4, {("eager", 100), ("mode", 50)}), (0.1, 1e-4, {("eager", 1), ("mode", 100)})],
)
def test_the_clock_is_not_read_more_often_than_every_sample(
    tmp_path: Path, eager_s: float, mode_s: float, counts: set[tuple[str, int]]
) -> None:
    """Each side has its own number of calls: that of the faster one would take the slower ages."""
    found, log, _ = launch(tmp_path, steady_s={"eager": eager_s, "mode": mode_s})
    assert {(turn.side, turn.count) for _, turn in log if isinstance(turn, Turn)} == counts
    assert ("mode", found.calls_a_sample) in counts


def test_an_accelerator_has_both_sides_in_one_process(tmp_path: Path) -> None:
    found, log, made = launch(tmp_path, cell=msgspec.structs.replace(CELL, device="cuda"))
    assert [process.sides for process in made] == [("eager", "mode")]
    assert found.pairs_s == [(0.02, 0.01)] * 5
    assert (found.eager_peak_memory_bytes, found.peak_memory_bytes) == (7, 9)
    assert found.paging is None, "page faults are those of a CPU"
    assert {name for name, asked in log if isinstance(asked, Turn)} == {"eager", "mode"}


def test_single_calls_stand_beside_the_pairs(tmp_path: Path) -> None:
    on_cuda = msgspec.structs.replace(CELL, device="cuda")
    found, _, _ = launch(tmp_path, cell=on_cuda, single_s=0.03)
    assert found.latency_s == [(0.03, 0.03)] * 5
    assert found.pairs_s == [(0.02, 0.01)] * 5
    assert launch(tmp_path)[0].latency_s == [], "a call on a CPU is always waited for"


def test_page_faults_with_a_settled_heap_are_a_finding_and_no_number(tmp_path: Path) -> None:
    found, _, _ = launch(tmp_path, faults=4870)
    assert found.outcome.status is Status.UNSETTLED
    assert "4,870 page faults a call in eager" in found.outcome.reason
    assert found.pairs_s == []
    assert found.paging is not None, "the finding is in the record"


def test_a_settled_heap_may_grow_in_one_of_two_turns(tmp_path: Path) -> None:
    plan = Plan(min_pairs=2, min_timed_s=0.0)
    found, _, _ = launch(tmp_path, plan=plan, faults=588, grows=True)
    assert len(found.pairs_s) == 2
    assert found.outcome == OK
    assert found.eager_paging is not None
    assert found.eager_paging.faults == 0


def test_page_faults_with_the_default_heap_are_a_number(tmp_path: Path) -> None:
    found, _, _ = launch(tmp_path, faults=4870, heap="default")
    assert found.outcome == OK
    assert found.paging is not None
    assert found.paging.faults == 4870


FAILED = Launch("warm", Outcome(Status.COMPILE_ERROR, "no"))


@pytest.mark.parametrize("kind", [Request, Go, Turn, Finish])
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Ended(FAILED), Status.COMPILE_ERROR),
        (turns.TimedOut(), Status.TIMEOUT),
        (turns.Lost(Outcome(Status.CRASH, "killed by SIGKILL")), Status.CRASH),
    ],
)
def test_a_process_that_fails_ends_both(
    tmp_path: Path, kind: type, answer: Said | Exception, status: Status
) -> None:
    found, _, made = launch(
        tmp_path, says=lambda asked: answer if isinstance(asked, kind) else None
    )
    assert found.outcome.status is status
    assert found.pairs_s == []
    assert all(process.ended for process in made)


@pytest.mark.parametrize(
    ("side", "at", "reason"),
    [
        ("eager", Turn, "killed by SIGABRT: free(): invalid size"),
        ("mode", Turn, "compiled, while eager runs: killed by SIGABRT: free(): invalid size"),
        # In its check the process of the compiled side runs eager, too.
        ("mode", Finish, "killed by SIGABRT: free(): invalid size"),
    ],
)
def test_a_process_that_ends_alone_is_blamed_alone(
    tmp_path: Path, side: str, at: type, reason: str
) -> None:
    pids = {"eager": os.getppid(), "mode": os.getpid()}
    finished = iter(pids)

    def says(asked: object) -> Exception | None:
        if not isinstance(asked, at):
            return None
        if (asked.side if isinstance(asked, Turn) else next(finished)) == side:
            outcome = Outcome(Status.CRASH, "killed by SIGABRT: free(): invalid size")
            return turns.Lost(outcome, pids[side])
        return None

    found, _, _ = launch(tmp_path, says=says, pids=list(pids.values()))
    assert found.outcome == Outcome(Status.CRASH, reason)
