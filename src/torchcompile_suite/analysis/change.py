"""Two releases on one machine: what changed beyond noise, by how much, and who moved.

Every effect is a difference of means of logs over launches, after minus before. Its variance has
two parts. *Between launches*: each cell's own, drawn towards what all cells of the machine show
(`statistics.moderated`), because three launches say little about their own spread. *Between
measurements*: minutes later the whole machine may be slower, which launches made in a row cannot
see. What is done again in many cells (`Gauge`) tells these moods: the same eager call for times,
the import of the same compiler for its costs. They cancel in the ratio.

False discoveries are controlled over the whole comparison, every quantity of every cell (Benjamini
and Hochberg, JRSS B 57, 1995), at `FALSE_DISCOVERY_RATE`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from ..cell import Cell, Launch, Measurement
from ..errors import SuiteError
from . import statistics
from .statistics import Interval, Prior

FALSE_DISCOVERY_RATE = 0.05
# Smaller than anybody acts on, however surely it is known.
SMALLEST = 0.01
# How far a launch's spread is believed to be what the machine's other cells show, in launches'
# worth. Cells that spread alike would make it infinite; but launches are not normal, and some cells
# have an odd one in three. Chosen by evidence/false_alarms.py.
MOST_PRIOR_DEGREES = 8.0
# What "not changed" promises: the interval lies within this of no change.
MARGIN = 0.05


class ChangeError(SuiteError):
    """The two cannot be compared; the message says what to measure."""


class Verdict(str, Enum):
    """What can be said of one quantity of one cell."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "not changed"
    UNKNOWN = "cannot tell"

    @property
    def changed(self) -> bool:
        """Whether it is a change beyond noise."""
        return self in (Verdict.WORSE, Verdict.BETTER)


class Effect(NamedTuple):
    """After over before, with its 95 % interval: above 1 is slower, or more memory.

    ``p`` is the two-sided probability of such a difference if there is none, ``q`` the false
    discovery rate at which it would count as a change.
    """

    factor: Interval
    p: float
    q: float
    verdict: Verdict


class Change(NamedTuple):
    """One cell of the two releases. ``effects`` is empty and ``gap`` says why, or the reverse."""

    cell: Cell
    effects: dict[str, Effect]
    gap: str = ""

    @property
    def changed(self) -> bool:
        """Whether any of its figures changed beyond noise."""
        return any(effect.verdict.changed for effect in self.effects.values())

    @property
    def moved(self) -> str:
        """Who made the time ratio change: eager, compiled, both, or nobody surely."""
        moved = [name for name in ("eager", "compiled") if self._changed(name)]
        return "both" if len(moved) == 2 else "".join(moved)

    def _changed(self, name: str) -> bool:
        return name in self.effects and self.effects[name].verdict.changed


class Comparison(NamedTuple):
    """All cells of two releases on one machine, and the cohort measured on both sides.

    ``means`` are geometric means over that cohort, nothing clipped, with the interval of the
    measurement (the cohort itself is fixed). ``noise`` is the standard deviation of one launch's
    log time ratio of eager against eager, the machine's noise floor; None when it was not measured.
    Of the cells in ``unlike`` compile costs and memory are not compared (`Launch.start`).
    """

    machine: str
    before: str
    after: str
    changes: list[Change]
    means: dict[str, Interval]
    noise: float | None
    unlike: list[Cell]

    @property
    def compared(self) -> int:
        """How many cells were measured on both sides."""
        return sum(1 for change in self.changes if change.effects)

    @property
    def regressions(self) -> list[Change]:
        """The cells of which something is worse beyond noise."""
        return [
            change
            for change in self.changes
            if any(effect.verdict is Verdict.WORSE for effect in change.effects.values())
        ]


def _of_pairs(
    value: Callable[[Sequence[tuple[float, float]]], float],
) -> Callable[[Sequence[Launch]], list[float]]:
    return lambda launches: [value(launch.pairs_s) for launch in statistics.counted(launches)]


def _costs(kind: str) -> Callable[[Sequence[Launch]], list[float]]:
    # A launch that compiled nothing cost nothing, which has no logarithm.
    return lambda launches: [cost for cost in statistics.compile_costs(launches, kind) if cost > 0]


def _memory(launches: Sequence[Launch]) -> list[float]:
    return [float(b) for launch in launches if (b := launch.peak_memory_bytes)]


class Gauge(NamedTuple):
    """Work that is the same in many cells of a release, so that it tells the machine's moods.

    ``same`` is equal for two measurements that did it, ``values`` are its seconds, one a launch.
    """

    same: Callable[[Measurement], Hashable]
    values: Callable[[Sequence[Launch]], list[float]]


def _start(measurement: Measurement) -> Hashable:
    return tuple(sorted({launch.start for launch in measurement.launches}))


_EAGER_CALL = Gauge(
    lambda measurement: msgspec.structs.replace(measurement.cell, mode="eager"),
    _of_pairs(statistics.launch_eager_latency),
)
# Python's work, as compiling is: where eager's time and a compile's drift by a tenth from hour to
# hour they do so apart (correlated 0.0 to 0.6), this one and a compile together (0.8 to 0.9).
_COMPILER_IMPORT = Gauge(
    _start,
    lambda launches: [
        launch.compiler_import_s for launch in launches if launch.compiler_import_s > 0
    ],
)
# The second where the compiler's import was part of the first call, and not timed.
_OF_COMPILING = (_COMPILER_IMPORT, _EAGER_CALL)


class Quantity(NamedTuple):
    """Something compared: its values, one a launch; whether eager has it; what tells its moods
    (the first of them that was measured; none where they cancel).

    With ``of_start`` it depends on what the process had imported when it was forked, and is
    compared only where that was the same. ``spreads_as`` names another quantity that spreads no
    less, for one that most measurements have a single value of, which tells nothing of its spread.
    A change below ``smallest`` is none.
    """

    values: Callable[[Sequence[Launch]], list[float]]
    of_eager: bool
    gauges: tuple[Gauge, ...] = ()
    of_start: bool = False
    spreads_as: str = ""
    smallest: float = SMALLEST

    def concerns(self, cell: Cell) -> bool:
        """Whether the cell has it: eager's ratio to eager in the same dtype is 1 by definition."""
        return self.of_eager or cell.mode != "eager" or cell.baseline != "eager"


QUANTITIES = {
    "time ratio": Quantity(_of_pairs(statistics.launch_ratio), False),
    "eager": Quantity(_of_pairs(statistics.launch_eager_latency), True, (_EAGER_CALL,)),
    "compiled": Quantity(_of_pairs(statistics.launch_latency), False, (_EAGER_CALL,)),
    # Measured again, cold starts of one cell differ by 7 %, and warm ones by 10 % (results/).
    "cold compile": Quantity(
        _costs("cold"), False, _OF_COMPILING, of_start=True, spreads_as="warm compile"
    ),
    "warm compile": Quantity(_costs("warm"), False, _OF_COMPILING, of_start=True),
    # A resident set comes in jumps: by how the heap lies, one launch in three of a transformer has
    # 27 MB more than the others (4 %), which three a side cannot tell from a change.
    "memory": Quantity(_memory, True, of_start=True, smallest=0.05),
}


def values(name: str, launches: Sequence[Launch]) -> list[float]:
    """The figure of that name (a key of `QUANTITIES`), one value a launch that has it."""
    return QUANTITIES[name].values(launches)


class Side:
    """A release with its measurements on one machine, one a cell.

    Keeps what each launch comes to, for a release is compared with many others.
    """

    def __init__(self, release: str, measurements: Iterable[Measurement]) -> None:
        """Of two measurements of a cell the later one counts."""
        self.release = release
        self.cells = {measurement.cell: measurement for measurement in measurements}
        self._values: dict[tuple[Cell, object], list[float]] = {}

    def values(self, cell: Cell, name: str) -> list[float]:
        """See `values`; none of a cell that failed."""
        return self._of(cell, name, QUANTITIES[name].values)

    def gauged(self, cell: Cell, gauge: Gauge) -> list[float]:
        """What the gauge showed, one value a launch; none of a cell that failed."""
        return self._of(cell, gauge, gauge.values)

    def _of(
        self, cell: Cell, key: object, of: Callable[[Sequence[Launch]], list[float]]
    ) -> list[float]:
        if (cell, key) not in self._values:
            found = self.cells[cell]
            self._values[cell, key] = of(found.launches) if found.outcome.ok else []
        return self._values[cell, key]


class _Known(NamedTuple):
    """What the whole machine says about one quantity."""

    prior: Prior | None
    mood: tuple[float, float]


_NO_MOOD = (0.0, math.inf)


def compare(machine: str, before: Side, after: Side) -> Comparison:
    """Compare two releases on one machine.

    Raises ChangeError when they have no measured cell in common.
    """
    sides = [before, after]
    cells = sorted(before.cells.keys() | after.cells.keys(), key=_place)
    both = [cell for cell in cells if not _gap(cell, sides)]
    if not both:
        raise ChangeError(
            f"nothing was measured on both {before.release} and {after.release} on {machine}; "
            f"try: asv run v{before.release}^! and asv run v{after.release}^!"
        )
    everything = [measurement for side in sides for measurement in side.cells.values()]
    gauges = {gauge for quantity in QUANTITIES.values() for gauge in quantity.gauges}
    moods = {gauge: mood_between(sides, gauge) for gauge in gauges}
    known = {
        name: _Known(
            _prior(name, sides),
            next((moods[each] for each in quantity.gauges if moods[each][1]), _NO_MOOD),
        )
        for name, quantity in QUANTITIES.items()
    }
    unlike = [cell for cell in both if len(_starts(cell, sides)) > 1]
    found: dict[tuple[Cell, str], tuple[float, float, float]] = {}
    for cell in both:
        for name, quantity in QUANTITIES.items():
            if not quantity.concerns(cell) or (quantity.of_start and cell in unlike):
                continue
            if effect := _difference([side.values(cell, name) for side in sides], known[name]):
                found[cell, name] = effect
    effects = _judge(found)
    changes = [
        Change(
            cell,
            {name: effects[cell, name] for name in QUANTITIES if (cell, name) in effects},
            _gap(cell, sides),
        )
        for cell in cells
    ]
    means = _means(found, known)
    noise = noise_floor(everything)
    return Comparison(machine, before.release, after.release, changes, means, noise, unlike)


def noise_floor(measurements: Iterable[Measurement]) -> float | None:
    """Standard deviation of one launch's log ratio of eager to eager, whose truth is 0.

    Root mean square over all launches of the eager cells: an offset from 1 counts as noise too.
    """
    squares = [
        math.log(ratio) ** 2
        for measurement in measurements
        if measurement.cell.mode == "eager"
        and measurement.cell.baseline == "eager"
        and measurement.outcome.ok
        for ratio in values("time ratio", measurement.launches)
    ]
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else None


def _gap(cell: Cell, sides: Sequence[Side]) -> str:
    """Why the cell cannot be compared, or the empty string."""
    for side, when in zip(sides, ("before", "after"), strict=True):
        if cell not in side.cells:
            return f"not measured {when}"
        outcome = side.cells[cell].outcome
        if not outcome.ok:
            return f"{when}: {outcome.status.value}: {outcome.reason}"
    methods = {launch.method for side in sides for launch in side.cells[cell].launches}
    if len(methods) > 1:
        return "timed by different methods (docs/method.md, Turns): measure the older one again"
    for side, other, when in zip(sides, reversed(sides), ("before", "after"), strict=True):
        quiet_s = statistics.yardstick(other.cells[cell].launches)
        slower = statistics.slowdown(side.cells[cell].launches, quiet_s)
        if slower > statistics.MOST_SLOWDOWN:
            return f"{when}: {statistics.neighbour(slower)}; measure it again"
    return ""


def _starts(cell: Cell, sides: Sequence[Side]) -> set[tuple[str, ...]]:
    return {launch.start for side in sides for launch in side.cells[cell].launches}


def _place(cell: Cell) -> tuple[object, ...]:
    return (cell.workload, cell.batch_size, cell.variant, cell.mode)


def _prior(name: str, sides: Sequence[Side]) -> Prior | None:
    """How much launches of all cells differ in that quantity."""
    quantity = QUANTITIES[name]
    samples = [
        side.values(cell, each)
        for side in sides
        for cell in side.cells
        if quantity.concerns(cell)
        for each in filter(None, (name, quantity.spreads_as))
    ]
    samples = [values for values in samples if len(values) > 1]
    prior = statistics.prior_spread(
        [statistics.log_variance(values) for values in samples],
        [len(values) - 1 for values in samples],
    )
    return prior and prior._replace(degrees=min(prior.degrees, MOST_PRIOR_DEGREES))


def mood_between(sides: Sequence[Side], gauge: Gauge = _EAGER_CALL) -> tuple[float, float]:
    """Variance between measurements of the same work at different moments, and its degrees.

    What their means differ by, beyond what their launches explain, is the machine. NaN variance and
    no degrees when nothing was measured twice.
    """
    squares, degrees = 0.0, 0
    for side in sides:
        groups: dict[Hashable, list[list[float]]] = defaultdict(list)
        for cell, measurement in side.cells.items():
            times = side.gauged(cell, gauge)
            if len(times) > 1:
                groups[gauge.same(measurement)].append(times)
        for group in groups.values():
            if len(group) < 2:
                continue
            means = [math.exp(statistics.log_mean(times)) for times in group]
            explained = math.fsum(
                statistics.log_variance(values) / len(values) for values in group
            ) / len(group)
            squares += (len(group) - 1) * (statistics.log_variance(means) - explained)
            degrees += len(group) - 1
    if not degrees:
        return math.nan, 0.0
    return max(0.0, squares / degrees), float(degrees)


def _difference(values: Sequence[list[float]], known: _Known) -> tuple[float, float, float] | None:
    """Difference of log means, its standard error, degrees of freedom; None without values."""
    if not all(values):
        return None
    own = math.fsum(
        statistics.log_variance(side) * (len(side) - 1) for side in values if len(side) > 1
    )
    degrees = sum(len(side) - 1 for side in values)
    variance, freedom = statistics.moderated(
        own / degrees if degrees else math.nan, degrees, known.prior
    )
    parts = [(variance * math.fsum(1 / len(side) for side in values), freedom)]
    mood, mood_freedom = known.mood
    if mood > 0:
        parts.append((2 * mood, mood_freedom))
    total = math.fsum(part for part, _ in parts)
    if math.isnan(total):
        return None
    # Satterthwaite, Biometrics Bulletin 2 (1946): the degrees of freedom of a sum of variances.
    weight = math.fsum(part**2 / freedom for part, freedom in parts)
    means = [statistics.log_mean(side) for side in values]
    return means[1] - means[0], math.sqrt(total), total**2 / weight if weight else math.inf


def _judge(
    found: dict[tuple[Cell, str], tuple[float, float, float]],
) -> dict[tuple[Cell, str], Effect]:
    import numpy as np
    from scipy.stats import false_discovery_control, t

    if not found:
        return {}
    # All at once: SciPy's t costs a tenth of a millisecond a call, however much it is asked.
    difference, error, degrees = np.array(list(found.values())).T
    p_values = np.where(difference == 0, 1.0, 0.0)
    unsure = error > 0
    size = np.abs(difference[unsure]) / error[unsure]
    p_values[unsure] = 2 * t.sf(size, degrees[unsure])
    q_values = false_discovery_control(p_values)
    reach = t.ppf((1 + statistics.CONFIDENCE) / 2, degrees) * error
    bounds = np.exp([difference, difference - reach, difference + reach]).T.tolist()
    effects = {}
    for key, bound, p, q in zip(found, bounds, p_values.tolist(), q_values.tolist(), strict=True):
        factor = Interval(*bound)
        effects[key] = Effect(factor, p, q, _verdict(factor, q, QUANTITIES[key[1]].smallest))
    return effects


def _verdict(factor: Interval, q: float, smallest: float) -> Verdict:
    if q <= FALSE_DISCOVERY_RATE and abs(math.log(factor.value)) > math.log1p(smallest):
        return Verdict.WORSE if factor.value > 1 else Verdict.BETTER
    if factor.low >= 1 / (1 + MARGIN) and factor.high <= 1 + MARGIN:
        return Verdict.SAME
    return Verdict.UNKNOWN


def _means(
    found: dict[tuple[Cell, str], tuple[float, float, float]], known: dict[str, _Known]
) -> dict[str, Interval]:
    """Geometric mean of each quantity's factors over the cells that have it on both sides.

    A mood may last a whole run, so it is not averaged out over cells as their own spread is.
    """
    from scipy.stats import t

    means = {}
    for name in QUANTITIES:
        effects = [effect for (_, quantity), effect in found.items() if quantity == name]
        if not effects:
            continue
        centre = math.fsum(difference for difference, _, _ in effects) / len(effects)
        mood = known[name].mood[0]
        own = math.fsum(error**2 - 2 * mood for _, error, _ in effects) / len(effects) ** 2
        error = math.sqrt(max(0.0, own) + 2 * mood)
        degrees = min(effect[2] for effect in effects) if mood > 0 else math.inf
        reach = float(t.ppf((1 + statistics.CONFIDENCE) / 2, degrees)) * error
        means[name] = Interval(*(math.exp(centre + by) for by in (0.0, -reach, reach)))
    return means
