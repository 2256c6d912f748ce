"""Do the suite and plain scripts agree at each place where the host runs the processors?

For a machine whose host moves them (docs/method.md). A round of a cell is a warm launch of the
suite, then two plain processes, eager and compiled, which take turns (`agreement`). The suite's
probes are read before each turn of these, too, and the suite's rule says which pairs count: those
with the processors near each other. The heap is settled. Takes half an hour; leave the machine
alone meanwhile.

A turn of a script takes 0.3 s, five times a turn of the suite: the host may move the processors
away and back within it, and the probes do not see that.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, median, stdev

import msgspec
import numpy as np

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.conditions import HostState
from torchcompile_suite.engine.rounds import TELLING_ROUNDS
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.host.probes import Probes, Reading, places
from torchcompile_suite.presentation.sheets import Sheet

from . import agreement, collect, draws, pools, power, series, tables

CELLS = agreement.CELLS[:12]
ROUNDS = 3
# A round ends with so many pairs near, or after so many seconds.
PAIRS, MOST_S = 12, 24.0
KEPT = Path(__file__).with_name("places.jsonl")
# Launches of the same hours: all pairs of 4 s count; and as they are now.
POOLS = {"all pairs": KEPT.with_name("pools-mixed"), "near pairs": KEPT.with_name("pools-near")}
WANTED = 24
# A fault of 3 %, in turns with the healthy workload, in the folder of the near pairs.
FAULT, WANTED_FAULTY = "slightly_slower_call", 20
# Series of at most so many rounds.
ROUNDS_IN_TURNS = (TELLING_ROUNDS, 8, 10)
DRAWS = 2000
PROBES: dict[str, Callable[[Reading], float]] = {
    "hand-off": lambda one: one.handoff_ns,
    "both processors": lambda one: one.together,
    "load": lambda one: one.load_ns,
    "core": lambda one: one.core_ns,
}
Array = np.ndarray


class Round(msgspec.Struct):
    """The ratio of a cell by a launch of the ``suite``, or by two plain processes (``script``).

    ``ratio``: of the pairs that count; ``host`` has that of the others. ``pairs``: of the scripts,
    seconds of both sides and the readings of each pair, medians of the three.
    """

    cell: Cell
    by: str
    ratio: float
    host: HostState
    torch: str
    cpu: str
    pairs: list[tuple[float, float, Reading]] = []


def measure() -> None:
    """Make the missing launches and rounds. May be interrupted and run again."""
    near = POOLS["near pairs"]
    collect.fill(near, [collect.Pool(*one, WANTED) for one in pools.CELLS.items()])
    power.measure(near, [FAULT], WANTED_FAULTY)
    python = collect.newest(CELLS)
    with tempfile.TemporaryDirectory(prefix="places-") as scratch:
        for most, (number, cell) in itertools.product(range(1, ROUNDS + 1), enumerate(CELLS)):
            while len(_made(cell, "script")) < most:
                try:
                    _keep_round(python, cell, Path(scratch, str(number)))
                except agreement.Disturbed as disturbed:
                    print(f"{cell}: again: {disturbed}", flush=True)


def _keep_round(python: Path, cell: Cell, folder: Path) -> None:
    ours = collect.warm(python, cell, folder / "suite")
    agreement.refuse_disturbed(ours.interference)
    assert ours.interference is not None
    assert ours.environment is not None
    longest_s = max(map(max, ours.pairs_s))
    probes, begun = Probes(), 0.0

    def more(pairs: int) -> bool:
        nonlocal begun
        begun = begun or time.monotonic()
        near = bool(pairs) and probes.enough(pairs, PAIRS)
        return not near and time.monotonic() < begun + MOST_S

    made = agreement.scripts(python, cell, folder / "script", longest_s, ["settled"], more, probes)
    eager, mode = made["settled"]
    pairs_s = [(one.seconds, other.seconds) for one, other in zip(eager, mode, strict=True)]
    counted = list(itertools.compress(pairs_s, probes.counting(len(pairs_s))))
    where = ours.environment.torch, ours.environment.cpu
    seen = [
        (eager_s, mode_s, _median(probes.readings[2 * pair : 2 * pair + 3]))
        for pair, (eager_s, mode_s) in enumerate(pairs_s)
    ]
    for by, counting, host, pairs in (
        ("suite", ours.pairs_s, ours.interference.host, []),
        ("script", counted, probes.state(pairs_s), seen),
    ):
        assert host is not None
        ratio = statistics.launch_ratio(counting)
        append_line(KEPT, msgspec.json.encode(Round(cell, by, ratio, host, *where, pairs)))
        print(f"{cell}, {by}: {ratio:.3f}, elsewhere {host.elsewhere_ratio}", flush=True)


def _median(readings: Sequence[Reading]) -> Reading:
    return Reading(*(median(each) for each in zip(*readings, strict=True)))


def _made(cell: Cell, by: str) -> list[Round]:
    return [one for one in read_lines(KEPT, Round) if (one.cell, one.by) == (cell, by)]


def table() -> list[tables.Part]:
    """A line for each cell: near, and elsewhere."""
    lines, within = [], 0
    kept = read_lines(KEPT, Round)
    for cell in CELLS:
        rounds = [
            [one for one in _made(cell, by) if one.host.place == "near"]
            for by in ("script", "suite")
        ]
        near = [[one.ratio for one in side] for side in rounds]
        elsewhere = [[one.host.elsewhere_ratio for one in side] for side in rounds]
        if all(near):
            within += abs(_difference(*near)) <= agreement.WITHIN["settled"]
            lines.append([str(cell), *_columns(*near), *_columns(*elsewhere)])
    numbers = ["scripts", "suite", "suite over scripts"]
    columns = [
        "cell",
        *(f"near: {one}" for one in numbers),
        *(f"elsewhere: {one}" for one in numbers),
    ]
    machines = sorted({f"PyTorch {one.torch} on {one.cpu}" for one in kept})
    limit = agreement.WITHIN["settled"]
    return [
        f"Compiled over eager, at most {ROUNDS} rounds a cell. near: pairs with the processors "
        "near each other. elsewhere: other pairs that were each at one place, far or on one core.",
        Sheet(columns, frozenset(columns[1:]), lines),
        "How much of the variance of the logs within a round each probe explains: of eager's time, "
        "and of the ratio. place: near, far or on one core, by the hand-off and the computation on "
        "both processors. Adjusted for the number of probes.",
        _explained(),
        "spread: of launches, of the log ratio, with all pairs of 4 s, by an earlier version, and "
        "with near pairs. inside: what the standard errors of the launches explain. headline: the "
        f"spread of {DRAWS} measurements, drawn from the pool, each ended by the suite's rule. "
        "coverage: of their nominal 95 % intervals. used: launches of one; seconds: of these, "
        "without the start of processes. It ends with +-3 %, or after twelve launches.",
        _spread(),
        f"{series.TRIES} comparisons in turns of eight workloads of these pools, near pairs, none "
        "or one of them faulty.",
        _found(),
        f"Near, {within} of {len(lines)} cells are within {limit:.0%}. {'; '.join(machines)}.",
    ]


def _spread() -> Sheet:
    """Of each pool of `pools.CELLS` the spread of its launches, and the coverage of intervals."""
    random = np.random.default_rng(2024)
    lines = []
    for (name, cell), (which, folder) in itertools.product(pools.CELLS.items(), POOLS.items()):
        kept = collect.kept(folder, name)
        if which == "all pairs":
            kept = [msgspec.structs.replace(one, interference=None) for one in kept]
        launches = statistics.counted(kept)
        x = [math.log(statistics.ratio_of(one)) for one in launches]
        truth = math.exp(fmean(x))
        errors = [statistics.launch_error(one.pairs_s) for one in launches]
        inside = math.sqrt(fmean(error**2 for error in errors))
        contained = used = 0
        headlines = []
        for _ in range(DRAWS):
            drawn = draws.measurement(kept, cell, random)
            found = statistics.measured_ratio(drawn.launches, drawn.sequential)
            contained += found.low <= truth <= found.high
            used += len(drawn.launches)
            headlines.append(math.log(found.value))
        lines.append(
            [
                *(name, which, str(len(kept)), str(len(launches)), f"{truth:.3f}"),
                *(f"{one:.2%}" for one in (stdev(x), inside, stdev(headlines))),
                *(f"{contained / DRAWS:.1%}", f"{used / DRAWS:.1f}"),
                f"{used / DRAWS * fmean(math.fsum(one.stages_s.values()) for one in kept):.0f}",
            ]
        )
    numbers = [
        "launches",
        "near",
        "ratio",
        "spread",
        "inside",
        "headline",
        "coverage",
        "used",
        "seconds",
    ]
    return Sheet(["pool", "counts", *numbers], frozenset(numbers), lines)


def _found() -> Sheet:
    """How often the fault is found, and another cell flagged."""
    near = POOLS["near pairs"]
    drawn_from = {
        name: statistics.counted(
            one for one in collect.kept(near, name) if not statistics.taken(one)
        )
        for name in pools.CELLS
    }
    made = power.measured(near, [FAULT], slowed=True)
    lines = [
        [
            f"time ratio {power.size(FAULT, made)}" if fault else "none",
            str(most),
            *series.tried(drawn_from, made, fault, most),
        ]
        for fault, most in itertools.product(("", FAULT), ROUNDS_IN_TURNS)
    ]
    names = ["found", "other cells flagged", "rounds", "± eager", "± compiled"]
    columns = ["injected", "most rounds", *names]
    return Sheet(columns, frozenset(["most rounds", *names]), lines)


def _explained() -> Sheet:
    """Of each cell the share of the variance that a probe explains (R2)."""
    figures: dict[str, Callable[[float, float], float]] = {
        "eager": lambda eager_s, _: eager_s,
        "ratio": lambda eager_s, mode_s: mode_s / eager_s,
    }
    lines = []
    for cell in CELLS:
        # Those of before the probe of the core have no readings any more.
        if not (rounds := [one for one in _made(cell, "script") if one.pairs]):
            continue
        line = [str(cell), str(sum(len(one.pairs) for one in rounds))]
        for of in figures.values():
            y = within([[math.log(of(*pair[:2])) for pair in one.pairs] for one in rounds])
            readings = [[pair[2] for pair in one.pairs] for one in rounds]
            known = [
                within([[math.log(probe(each)) for each in those] for those in readings])
                for probe in PROBES.values()
            ]
            classes = [
                within([[float(place == name) for place in places(those)] for those in readings])
                for name in ("far", "shared")
            ]
            line += [f"{r2(y, [x], len(rounds)):.0%}" for x in known]
            line += [
                f"{r2(y, classes, len(rounds)):.0%}",
                f"{r2(y, [*known, *classes], len(rounds)):.0%}",
            ]
        lines.append(line)
    names = [*PROBES, "place", "all"]
    columns = ["cell", "pairs", *(f"{figure}: {name}" for figure in figures for name in names)]
    return Sheet(columns, frozenset(columns[1:]), lines)


def within(groups: Sequence[Sequence[float]]) -> Array:
    """The values of all groups, each less the mean of its group."""
    return np.concatenate([np.subtract(one, np.mean(one)) for one in groups])


def r2(y: Array, by: Sequence[Array], groups: int) -> float:
    """The share of the variance that least squares on these explain, adjusted; 0 at least.

    All are `within` so many groups.
    """
    x = np.column_stack(by)
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    free = len(y) - groups
    return max(0.0, 1 - float(left @ left) / (free - len(by)) / (float(y @ y) / free))


def _columns(scripts: Iterable[float | None], suite: Iterable[float | None]) -> list[str]:
    both = [[one for one in side if one] for side in (scripts, suite)]
    if not all(len(side) > 1 for side in both):
        return [_mean(side) for side in both] + [""]
    error = math.hypot(*(stdev(map(math.log, side)) / math.sqrt(len(side)) for side in both))
    return [*map(_mean, both), f"{_difference(*both):+.1%} +-{error:.1%}"]


def _mean(side: list[float]) -> str:
    return f"{math.exp(fmean(map(math.log, side))):.3f}" if side else ""


def _difference(scripts: list[float], suite: list[float]) -> float:
    logs = [fmean(map(math.log, side)) for side in (suite, scripts)]
    return math.expm1(logs[0] - logs[1])


if __name__ == "__main__":
    tables.run("places", table, measure)
