"""Two releases on one machine: what changed beyond noise, by how much, and who moved.

Every effect is a difference of means of logs over launches, after minus before. Its variance has
two parts. *Between launches*: each cell's own, drawn towards what all cells of the machine show
(`statistics.moderated`), because three launches say little about their own spread. *Between
measurements*: minutes later the whole machine may be slower, which launches made in a row cannot
see. Eager is measured again with every mode of a workload, so its moods are known; they concern
times, and cancel in the ratio.

False discoveries are controlled over the whole comparison, every quantity of every cell (Benjamini
and Hochberg, JRSS B 57, 1995), at `FALSE_DISCOVERY_RATE`. Half of it is spent on the time ratios,
which are what is asked, and half on all the rest: weights settled beforehand keep the rate (Genovese,
Roeder and Wasserman, Biometrika 93, 2006).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from .. import statistics
from ..cell import Cell, Launch, Measurement
from ..errors import SuiteError
from ..statistics import Interval, Prior

if TYPE_CHECKING:
    import numpy as np

FALSE_DISCOVERY_RATE = 0.05
PRIMARY = "time ratio"
PRIMARY_SHARE = 0.5
# Smaller than anybody acts on, however surely it is known: a page more of memory is no change.
SMALLEST = 0.01
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


class Quantity(NamedTuple):
    """Something compared: its values, one a launch; whether eager has it; whether moods move it.

    With ``of_start`` it depends on what the process had imported when it was forked, and is
    compared only where that was the same. ``spreads_as`` names another quantity that spreads no
    less, for one that most measurements have a single value of, which tells nothing of its spread.
    """

    values: Callable[[Sequence[Launch]], list[float]]
    of_eager: bool
    moody: bool
    of_start: bool = False
    spreads_as: str = ""

    def concerns(self, cell: Cell) -> bool:
        """Whether the cell has it: eager's ratio to eager in the same dtype is 1 by definition."""
        return self.of_eager or cell.mode != "eager" or cell.baseline != "eager"


QUANTITIES = {
    "time ratio": Quantity(_of_pairs(statistics.launch_ratio), False, False),
    "eager": Quantity(_of_pairs(statistics.launch_eager_latency), True, True),
    "compiled": Quantity(_of_pairs(statistics.launch_latency), False, True),
    # Measured again, cold starts of one cell differ by 7 %, and warm ones by 10 % (results/).
    "cold compile": Quantity(_costs("cold"), False, True, True, spreads_as="warm compile"),
    "warm compile": Quantity(_costs("warm"), False, True, True),
    "memory": Quantity(_memory, True, False, True),
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
        self._values: dict[tuple[Cell, str], list[float]] = {}

    def values(self, cell: Cell, name: str) -> list[float]:
        """See `values`; none of a cell that failed."""
        key = cell, name
        if key not in self._values:
            found = self.cells[cell]
            self._values[key] = values(name, found.launches) if found.outcome.ok else []
        return self._values[key]


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
    mood = mood_between(sides)
    known = {
        name: _Known(_prior(name, sides), mood if quantity.moody else _NO_MOOD)
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
    return statistics.prior_spread(
        [statistics.log_variance(values) for values in samples],
        [len(values) - 1 for values in samples],
    )


def mood_between(sides: Sequence[Side]) -> tuple[float, float]:
    """Variance between measurements of one eager time at different moments, and its degrees.

    Each mode's cell measures the same eager call again. What their means differ by, beyond what
    their launches explain, is the machine. NaN variance when no eager time was measured twice.
    """
    squares, degrees = 0.0, 0
    for side in sides:
        groups: dict[Cell, list[list[float]]] = defaultdict(list)
        for cell in side.cells:
            times = side.values(cell, "eager")
            if len(times) > 1:
                groups[_eager(cell)].append(times)
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


def _eager(cell: Cell) -> Cell:
    """The eager cell whose time this cell measures too."""
    return msgspec.structs.replace(cell, mode="eager")


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
    primary = np.array([name == PRIMARY for _, name in found])
    q_values = false_discovery_control(np.minimum(1.0, p_values / _weights(primary)))
    reach = t.ppf((1 + statistics.CONFIDENCE) / 2, degrees) * error
    bounds = np.exp([difference, difference - reach, difference + reach]).T.tolist()
    effects = {}
    for key, bound, p, q in zip(found, bounds, p_values.tolist(), q_values.tolist(), strict=True):
        factor = Interval(*bound)
        effects[key] = Effect(factor, p, q, _verdict(factor, q))
    return effects


def _weights(primary: np.ndarray) -> np.ndarray:
    """Of each figure, one on average: both groups have their share, however many they are."""
    import numpy as np

    if primary.all() or not primary.any():
        return np.ones(len(primary))
    mean = primary.mean()
    return np.where(primary, PRIMARY_SHARE / mean, (1 - PRIMARY_SHARE) / (1 - mean))


def _verdict(factor: Interval, q: float) -> Verdict:
    if q <= FALSE_DISCOVERY_RATE and abs(math.log(factor.value)) > math.log1p(SMALLEST):
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
