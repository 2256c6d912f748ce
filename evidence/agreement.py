"""Does the suite report what a user gets? Plain scripts beside the suite, at both ends of the heap.

``plain/plain.py`` has at most 25 lines, does not import the suite, and runs one side, eager or
compiled, alone in its process. In a round, four of these processes run: both sides, with the
defaults of malloc and with the environment variables that settle the heap. They know nothing of
each other. This script stops three of them at a time, so that they take turns and the drift of the
machine cancels: the ratio of a round is the median over turns of compiled over eager. A stretch
that a stop interrupted, or that follows it at once, does not count. The suite makes one launch at
each end. A cell gets rounds until the standard error is small. Takes an hour and a half; leave the
machine alone meanwhile.

A round that other processes or guests of the host disturbed is made again, by the rule that the
suite has for its own launches.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, median, stdev
from typing import NamedTuple

import msgspec

from torchcompile_suite import workloads
from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import DEFAULT_HEAP, Cell
from torchcompile_suite.conditions import Interference
from torchcompile_suite.engine.interference import Watch, of_processes
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import heap
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import OK, Launch
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import stamp

from . import collect, tables

CELLS = (
    Cell("resnet18", 1, "default"),
    Cell("resnet18", 8, "default"),
    Cell("mobilenetv2_100", 4, "default"),
    Cell("mobilenetv3_small_100", 1, "default"),
    Cell("convnext_atto", 1, "default"),
    Cell("regnety_002", 1, "default"),
    Cell("vit_tiny_patch16_224", 1, "default"),
    Cell("deit_tiny_patch16_224", 1, "default"),
    Cell("gpt_decode", 1, "default"),
    Cell("pointwise_chain", 1, "default"),
    Cell("softmax_matmul", 1, "default"),
    Cell("relevance_information", 4, "default", phase="training"),
    Cell("resnet50", 1, "default"),
    Cell("efficientnet_b0", 1, "default"),
    Cell("DistilBertForMaskedLM", 1, "default"),
)
# Within this much of the scripts' ratio.
WITHIN = {"settled": 0.03, "default": 0.05}
# A cell gets rounds until its standard error is under this share of `WITHIN`. The width decides,
# never the difference itself.
ROUNDS = 6
MOST_ROUNDS = 12
PRECISE = 1 / 3
# How long one of the processes runs before the next one does, and the part that does not count.
# Within 20 ms of its start a turn has its final speed.
TURN_S = 0.3
SETTLE_S = 0.05
# A turn of long calls lasts so many times the longest call of the suite. A script's may be longer.
STRETCHES = 5
TURNS = 12
# Stretches of a plain script before its turns.
WARM_UP = 20
KEPT = Path(__file__).with_name("agreement.jsonl")
PLAIN = Path(__file__).with_name("plain") / "plain.py"


class Disturbed(Exception):
    """Something else used the processors during a round; the message says what."""


class Round(msgspec.Struct):
    """One ratio of a cell at one end of the heap, with seconds and page faults a call.

    ``by``: ``script`` for two plain processes, ``suite`` for one launch.
    """

    cell: Cell
    end: str
    by: str
    eager_s: float
    mode_s: float
    eager_faults: float
    mode_faults: float
    torch: str
    cpu: str
    method: int

    @property
    def log_ratio(self) -> float:
        """The log of compiled over eager."""
        return math.log(self.mode_s / self.eager_s)


class Difference(NamedTuple):
    """Suite over scripts, as the mean of the logs over rounds, with its standard error."""

    log: float
    error: float


def measure() -> None:
    """Make the missing rounds. May be interrupted and run again."""
    python = collect.newest(CELLS)
    with tempfile.TemporaryDirectory(prefix="agreement-") as scratch:
        # The first rounds of all cells, then more of those that need them.
        for most in range(ROUNDS, MOST_ROUNDS + 1):
            for number, cell in enumerate(CELLS):
                folder = Path(scratch, str(number))
                while len(_made(cell, "settled", "suite")) < most and not _done(cell):
                    _keep_round(python, cell, folder)


def _keep_round(python: Path, cell: Cell, folder: Path) -> None:
    try:
        made = _round(python, cell, folder)
    except Disturbed as disturbed:
        print(f"{cell}: again: {disturbed}", flush=True)
        return
    append_line(KEPT, msgspec.json.encode(made))
    ratios = (f"{one.end}, {one.by}: {math.exp(one.log_ratio):.3f}" for one in made)
    print(f"{cell}: {'; '.join(ratios)}", flush=True)


def _done(cell: Cell) -> bool:
    rounds = len(_made(cell, "settled", "suite"))
    return rounds >= ROUNDS and (
        rounds >= MOST_ROUNDS
        or all(_difference(cell, end).error < PRECISE * WITHIN[end] for end in WITHIN)
    )


def _difference(cell: Cell, end: str) -> Difference:
    """Round by round: the speed of the machine, which changes between rounds, cancels."""
    pairs = zip(_made(cell, end, "suite"), _made(cell, end, "script"), strict=True)
    apart = [suite.log_ratio - script.log_ratio for suite, script in pairs]
    return Difference(fmean(apart), stdev(apart) / math.sqrt(len(apart)))


def _made(cell: Cell, end: str, by: str) -> list[Round]:
    kept = itertools.chain.from_iterable(read_lines(KEPT, list[Round]))
    return [one for one in kept if (one.cell, one.end, one.by) == (cell, end, by)]


def _round(python: Path, cell: Cell, folder: Path) -> list[Round]:
    """A launch of the suite at each end, then the four plain processes."""
    made = []
    for end in WITHIN:
        allocator = DEFAULT_HEAP if end == "default" else "system"
        at_end = msgspec.structs.replace(cell, allocator=allocator)
        ours = collect.warm(python, at_end, folder / "suite")
        refuse_disturbed(ours.interference)
        assert ours.paging is not None
        assert ours.eager_paging is not None
        faults = ours.eager_paging.faults, ours.paging.faults
        made.append(_made_by("suite", cell, end, ours.pairs_s, faults, ours))
    longest_s = max(max(one.eager_s, one.mode_s) for one in made)
    for end, sides in scripts(python, cell, folder / "script", longest_s).items():
        pairs_s = [(eager.seconds, mode.seconds) for eager, mode in zip(*sides, strict=True)]
        eager_faults, mode_faults = (median(turn.faults for turn in side) for side in sides)
        made.append(_made_by("script", cell, end, pairs_s, (eager_faults, mode_faults), ours))
    return made


def refuse_disturbed(interference: Interference | None) -> None:
    """Raise Disturbed if others took more of the processors than the suite allows a launch."""
    if reason := statistics.disturbed(Launch("warm", OK, interference=interference)):
        raise Disturbed(reason)


def _made_by(
    by: str,
    cell: Cell,
    end: str,
    pairs_s: Sequence[tuple[float, float]],
    faults: tuple[float, float],
    launch: Launch,
) -> Round:
    """A round with the environment of the launch. Pairs and faults: of eager and the mode."""
    assert launch.environment is not None
    where = launch.environment
    # The median over pairs of the ratio is the figure; the times only show its sides.
    eager_s = statistics.launch_eager_latency(pairs_s)
    mode_s = eager_s * statistics.launch_ratio(pairs_s)
    eager_faults, mode_faults = faults
    return Round(
        cell,
        end,
        by,
        eager_s,
        mode_s,
        eager_faults,
        mode_faults,
        where.torch,
        where.cpu,
        launch.method,
    )


class Turn(NamedTuple):
    """A turn of a plain process: seconds and page faults a call."""

    seconds: float
    faults: float


def scripts(
    python: Path,
    cell: Cell,
    cache: Path,
    longest_s: float,
    ends: Iterable[str] = WITHIN,
    more: Callable[[int], bool] = lambda pairs: pairs < TURNS,
    probe: Callable[[], None] = lambda: None,
) -> dict[str, list[list[Turn]]]:
    """End -> the turns of the eager script and of the compiled one.

    ``longest_s``: seconds of the longest call. ``more``: whether another turn of each process
    follows after so many. ``probe`` is called before each turn and after the last one. Raises
    Disturbed.
    """
    own = workloads.libraries(cell.workload)
    prefix = python.parents[1]
    libraries = os.pathsep.join(str(stamp.apart(one, prefix)) for one in own)
    name = cell.workload + (":training" if cell.phase == "training" else "")
    running = {}
    for end, side in itertools.product(ends, ("eager", "compiled")):
        settled = heap.VARIABLES if end == "settled" else {}
        variables = {**settled, "TORCHINDUCTOR_CACHE_DIR": str(cache), "PYTHONPATH": libraries}
        running[end, side] = subprocess.Popen(
            [str(python), str(PLAIN), name, str(cell.batch_size), side, "1000000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=collect.variables(python, variables),
        )
    try:
        with ThreadPoolExecutor(len(running)) as pool:
            list(pool.map(_stop_when_warm, running.values()))
        turn_s = max(TURN_S, SETTLE_S + STRETCHES * longest_s)
        turns = _turns(running, turn_s, more, probe)
        made = {}
        for key, process in running.items():
            process.kill()
            # The last line of a killed process may be incomplete.
            printed = process.communicate()[0].splitlines()[:-1]
            stretches = [list(map(float, line.split())) for line in printed]
            made[key] = [_turn(stretches, *when) for when in turns[key]]
    finally:
        for process in running.values():
            process.kill()
    return {end: [made[end, side] for side in ("eager", "compiled")] for end, _ in made}


def _stop_when_warm(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for _ in range(WARM_UP):
        if not process.stdout.readline():
            raise SuiteError(f"a plain script failed: {process.args!r}")
    process.send_signal(signal.SIGSTOP)


def _turns(
    running: dict[tuple[str, str], subprocess.Popen[str]],
    turn_s: float,
    more: Callable[[int], bool],
    probe: Callable[[], None],
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Let the stopped processes run one at a time; begin and end of each turn. May raise Disturbed.

    The order is reversed each time.
    """
    turns: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in running}
    order, seen = list(running), []
    while more(len(turns[order[0]])):
        for key in order:
            probe()
            own_s = functools.partial(of_processes, {running[key].pid})
            watch = Watch()
            watch.begin(own_s)
            begun = time.time()
            running[key].send_signal(signal.SIGCONT)
            time.sleep(turn_s)
            running[key].send_signal(signal.SIGSTOP)
            turns[key].append((begun, time.time()))
            watch.end(own_s)
            seen.append(watch.shares())
        order.reverse()
    probe()
    shares = [one for one in seen if one is not None]
    if shares:
        refuse_disturbed(
            Interference(
                steal_share=median(one.steal_share for one in shares),
                others_share=median(one.others_share for one in shares),
            )
        )
    return turns


def _turn(stretches: Sequence[Sequence[float]], begun: float, ended: float) -> Turn:
    """The median of the stretches of a turn that no stop has touched.

    A stretch is what plain.py prints: its start, its end, seconds a call, page faults a call.
    """
    whole = [line for line in stretches if begun <= line[0] and line[1] <= ended]
    # Before a whole stretch of long calls the rest of the stopped one has settled the caches.
    counted = [line for line in whole if begun + SETTLE_S <= line[0]] or whole
    if not counted:
        raise Disturbed("a call took longer than a turn")
    return Turn(*(median(line[at] for line in counted) for at in (2, 3)))


def table() -> list[tables.Part]:
    """A line for each cell and end."""
    lines, within = [], dict.fromkeys(WITHIN, 0)
    for cell, end in itertools.product(CELLS, WITHIN):
        scripts, suite = (_made(cell, end, by) for by in ("script", "suite"))
        if len(scripts) < 2 or len(suite) < 2:
            continue
        by_script, by_suite = (fmean(one.log_ratio for one in made) for made in (scripts, suite))
        difference = _difference(cell, end)
        within[end] += abs(math.expm1(difference.log)) <= WITHIN[end]
        lines.append(
            [
                str(cell),
                end,
                str(len(suite)),
                f"{math.exp(by_script):.3f}",
                f"{math.exp(by_suite):.3f}",
                f"{math.expm1(difference.log):+.1%} ± {difference.error:.1%}",
                *(f"{_over(suite, scripts, side):+.1%}" for side in ("eager_s", "mode_s")),
                *(
                    _faults(made, side)
                    for made in (scripts, suite)
                    for side in ("eager_faults", "mode_faults")
                ),
            ]
        )
    numbers = [
        *("rounds", "scripts' ratio", "suite's ratio", "suite over scripts", "eager", "compiled"),
        *("scripts: faults, eager", "compiled ", "suite: faults, eager", "compiled  "),
    ]
    counts = "; ".join(
        f"{end}: {within[end]} of {sum(line[1] == end for line in lines)} within {WITHIN[end]:.0%}"
        for end in WITHIN
    )
    kept = list(itertools.chain.from_iterable(read_lines(KEPT, list[Round])))
    places = sorted({f"PyTorch {one.torch} on {one.cpu}, method {one.method}" for one in kept})
    return [
        "Compiled over eager. A round is a pair of plain processes and a launch of the suite. "
        f"There are rounds until the standard error is under {WITHIN['settled'] * PRECISE:.1%} "
        f"(settled) and {WITHIN['default'] * PRECISE:.1%} (default), at least {ROUNDS} and at most "
        f"{MOST_ROUNDS}. suite over scripts: of the ratio, with its standard error, then of each "
        "time. faults: page faults a call.",
        Sheet(["cell", "heap", *numbers], frozenset(numbers), lines),
        f"{counts}. {'; '.join(places)}.",
    ]


def _over(suite: list[Round], scripts: list[Round], side: str) -> float:
    logs = [fmean(math.log(getattr(one, side)) for one in made) for made in (suite, scripts)]
    return math.expm1(logs[0] - logs[1])


def _faults(made: list[Round], side: str) -> str:
    return f"{fmean(getattr(one, side) for one in made):,.0f}"


if __name__ == "__main__":
    tables.run("agreement", table, measure)
