"""Two releases compared: every figure of every cell, the means, and the gaps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ... import workloads
from ...cell import Cell
from ...errors import SuiteError
from ...host.probes import FAR
from ...measurement import Measurement, Status
from ...modes import EAGER
from .. import statistics
from ..statistics import Interval, Prior
from . import discovery
from .discovery import Difference, Effect, Key, LogChange
from .quantities import QUANTITIES, Logs, Side, values

# Limit for the weight of the machine's spread against the spread of a cell, in launches. Cells that
# spread alike would give an infinite weight, but launches are not normal, and in some cells one
# launch in three is an outlier. evidence/false_alarms.py counts what this limit leaves.
MOST_PRIOR_DEGREES = 8.0


class ChangeError(SuiteError):
    """The two releases cannot be compared; the message says what to measure."""


class Change(NamedTuple):
    """One cell of the two releases: its effects, or in ``gap`` the reason why there are none.

    ``broken``: the cell had numbers before and has failed since.
    """

    cell: Cell
    effects: dict[str, Effect]
    gap: str = ""
    broken: bool = False

    @property
    def changed(self) -> bool:
        """Whether any figure of the cell changed beyond noise."""
        return any(effect.difference.changed for effect in self.effects.values())

    @property
    def moved(self) -> str:
        """Which time changed beyond noise: "eager", "compiled", "both", or "" if neither did.

        Of a cell of eager in another precision, where nothing is compiled, "mode" for "compiled".
        """
        second = "mode" if self.cell.mode == EAGER else "compiled"
        names = {"eager": "eager", "compiled": second}
        changed = [name for name, effect in self.effects.items() if effect.difference.changed]
        moved = [said for name, said in names.items() if name in changed]
        return "both" if len(moved) == 2 else "".join(moved)

    def moved_by(self, name: str) -> str:
        """Which time changed, for a time ratio that changed; else the empty string."""
        told = name == "time ratio" and self.effects[name].difference.changed
        return (self.moved or "cannot tell") if told else ""


class Comparison(NamedTuple):
    """All cells of two releases on one machine, or each on one of several machines.

    - ``in_means``: the cells of models, as users run them; all cells if there are none.
      ``means``: geometric mean of each figure over those of them in which it is compared. No value
      is clipped. The interval is that of the measurement, because the set of cells is fixed.
    - ``noise``: the machine's noise floor (`noise_floor`); None when it was not measured.
    - ``unlike``: cells whose compile costs and memory are not compared, because their processes
      were forked with different libraries imported (`Launch.began`).
    - ``packages``: what differs beside PyTorch ("torchao 0.15.0, then 0.18.0"), with the cells that
      use it.
    - ``machine``: the name, or all names. ``machine_of``: that of each cell.
    """

    machine: str
    before: str
    after: str
    changes: list[Change]
    in_means: frozenset[Cell]
    means: dict[str, Interval]
    noise: float | None
    unlike: list[Cell]
    packages: dict[str, list[Cell]]
    machine_of: dict[Cell, str]

    @property
    def compared(self) -> int:
        """The number of cells that can be compared."""
        return sum(not change.gap for change in self.changes)

    @property
    def of_models(self) -> bool:
        """Whether the means are over models: no small program, no analysis of a gain."""
        return all(map(of_model, self.in_means))

    @property
    def paired(self) -> int:
        """The number of these cells that were compared round by round."""
        return sum(
            any(effect.paired for effect in change.effects.values()) for change in self.changes
        )

    @property
    def broken(self) -> list[Change]:
        """The cells that had numbers and have failed since."""
        return [change for change in self.changes if change.broken]

    @property
    def regressions(self) -> list[Change]:
        """The cells with at least one figure that is worse beyond noise."""
        return [
            change
            for change in self.changes
            if any(effect.difference is Difference.WORSE for effect in change.effects.values())
        ]


_NOT_MEASURED = "not measured"


def compare(machine: str, before: Side, after: Side) -> Comparison:
    """Compare two releases on one machine.

    Raises ChangeError when no cell was measured with both.
    """
    return compare_machines({machine: (before, after)})


def compare_machines(sides_of: Mapping[str, tuple[Side, Side]]) -> Comparison:
    """Compare two releases whose cells come from several machines, each from one of them.

    Each machine has its own spread and drift. All figures are judged together, and a mean is one of
    factors within a machine. Raises ChangeError when no cell can be compared, and
    ValueError for a cell that two machines have.
    """
    machine_of = _machine_of(sides_of)
    before, after = (side.release for side in next(iter(sides_of.values())))
    gaps = {cell: _gap(cell, sides_of[machine]) for cell, machine in machine_of.items()}
    if all(gaps.values()):
        unfit = [gap for gap in gaps.values() if not gap.startswith(_NOT_MEASURED)]
        why = f"try: asv run v{before}^! and asv run v{after}^!"
        raise ChangeError(
            f"nothing can be compared between {before} and {after} on {' or '.join(sides_of)}; "
            + (f"the first cell: {unfit[0]}" if unfit else why)
        )
    log_changes: dict[Key, LogChange] = {}
    unlike: list[Cell] = []
    packages: dict[str, list[Cell]] = {}
    for machine, sides in sides_of.items():
        both = [cell for cell, of in machine_of.items() if of == machine and not gaps[cell]]
        differ = [
            cell
            for cell in both
            if len({start for side in sides for start in side.starts(cell)}) > 1
        ]
        unlike += differ
        for cell in both:
            for said in _packages(cell, sides):
                packages.setdefault(said, []).append(cell)
        log_changes |= _log_changes(both, differ, sides)
    judged = discovery.effects(log_changes)
    changes = [
        Change(
            cell,
            {name: judged[cell, name] for name in QUANTITIES if (cell, name) in judged},
            gaps[cell],
            _broken(cell, sides_of[machine_of[cell]]),
        )
        for cell in machine_of
    ]
    compared = {cell for cell, _ in log_changes}
    in_means = frozenset(filter(of_model, compared)) or frozenset(compared)
    means = _means({key: one for key, one in log_changes.items() if key[0] in in_means})
    noise = noise_floor(
        measurement
        for sides in sides_of.values()
        for side in sides
        for measurement in side.cells.values()
    )
    machines = ", ".join(sides_of)
    return Comparison(
        machines, before, after, changes, in_means, means, noise, unlike, packages, machine_of
    )


def _means(changes: Mapping[Key, LogChange]) -> dict[str, Interval]:
    """The mean factor of each quantity that a cell has."""
    return {
        name: discovery.mean_factor(of_name)
        for name in QUANTITIES
        if (of_name := [change for (_, quantity), change in changes.items() if quantity == name])
    }


def _packages(cell: Cell, sides: Sequence[Side]) -> Iterator[str]:
    """Packages of which the cell uses two versions."""
    before, after = (side.packages(cell) for side in sides)
    for name in (*workloads.libraries(cell.workload), *(["torchao"] if cell.quantised else ())):
        if name in before and name in after and before[name] != after[name]:
            yield f"{name} {before[name]}, then {after[name]}"


def of_model(cell: Cell) -> bool:
    """Whether the cell is of a model, as users run it: no small program, no analysis of a gain."""
    return cell.asks_whether_it_pays and not workloads.made_for(cell.workload)


def _machine_of(sides_of: Mapping[str, tuple[Side, Side]]) -> dict[Cell, str]:
    """The machine of each cell, in the order of the cells."""
    found: dict[Cell, str] = {}
    for machine, (before, after) in sides_of.items():
        for cell in before.cells.keys() | after.cells.keys():
            if cell in found:
                raise ValueError(f"two machines have {cell}; assemble the records first")
            found[cell] = machine
    return {cell: found[cell] for cell in sorted(found, key=_order)}


def noise_floor(measurements: Iterable[Measurement]) -> float | None:
    """Standard deviation of the log of one launch's ratio of eager to eager; None if not measured.

    The true ratio is 1. This is the root mean square over all launches of the eager cells, so an
    offset from 1 counts as noise too.
    """
    squares = [
        math.log(ratio) ** 2
        for measurement in measurements
        if measurement.cell.mode == EAGER
        and measurement.cell.baseline == EAGER
        and measurement.outcome.ok
        for ratio in values("time ratio", measurement.launches)
    ]
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else None


def _log_changes(
    both: Sequence[Cell], unlike: Sequence[Cell], sides: Sequence[Side]
) -> dict[Key, LogChange]:
    """The change of each quantity of each cell that has it on both sides."""
    priors = {name: _prior(name, sides) for name in QUANTITIES}
    return {
        (cell, name): change
        for cell in both
        for name, quantity in QUANTITIES.items()
        if quantity.concerns(cell) and not (quantity.of_start and cell in unlike)
        if (change := _log_change(cell, name, sides, priors[name])) is not None
    }


def _log_change(
    cell: Cell, name: str, sides: Sequence[Side], prior: Prior | None
) -> LogChange | None:
    """The change of one quantity of one cell: round by round, if the machine's drift is in it.

    Runs that followed each other cannot show how much the machine changed in between: their
    launches, and the work that one of them repeated, are all before the change or all after it.
    Without a drift, rounds would only halve the degrees of freedom.
    """
    if QUANTITIES[name].drifts:
        return discovery.paired_change(_factors(cell, name, sides), prior)
    before, after = (side.logs(cell, name) for side in sides)
    return None if before is None or after is None else discovery.log_change(before, after, prior)


def _factors(cell: Cell, name: str, sides: Sequence[Side]) -> list[float]:
    """The quantity's factor in each round; empty where most launches of both have no partner."""
    of_rounds = discovery.factors(*(side.rounds(cell, name) for side in sides))
    if not of_rounds:
        return []
    fewest = min(len(side.values(cell, name)) for side in sides)
    return of_rounds if 2 * len(of_rounds) > fewest else []


def _gap(cell: Cell, sides: Sequence[Side]) -> str:
    """Why the cell cannot be compared, or the empty string."""
    for side, when in zip(sides, ("before", "after"), strict=True):
        if cell not in side.cells:
            return f"{_NOT_MEASURED} {when}"
        outcome = side.cells[cell].outcome
        if not outcome.ok:
            return f"{when}: {outcome}"
    if len({method for side in sides for method in side.methods(cell)}) > 1:
        return "timed by different methods (see docs/method.md): measure the older one again"
    if len({began[0] for side in sides for began in side.starts(cell)}) > 1:
        return (
            "measured in forks and in fresh processes (see docs/method.md): measure the older one "
            "again"
        )
    if differ := _settings(*(side.settings(cell) for side in sides)):
        return f"measured with other settings: {differ}; measure both alike"
    for side, other, when in zip(sides, reversed(sides), ("before", "after"), strict=True):
        factor = statistics.times_as_slow(side.calibration_s(cell), other.calibration_s(cell))
        if side.loop(cell) == other.loop(cell) and factor > statistics.MOST_SLOWDOWN:
            return f"{when}: {statistics.neighbour(factor)}; measure it again"
        handoff_ns, other_ns = side.handoff_ns(cell), other.handoff_ns(cell)
        if handoff_ns and other_ns and handoff_ns > FAR * other_ns:
            return (
                f"{when}: the host ran the processors far from each other ({handoff_ns:.0f} ns "
                f"between them, and {other_ns:.0f} in the other); measure both in turns"
            )
    return ""


def _broken(cell: Cell, sides: Sequence[Side]) -> bool:
    """Whether the cell was ok before and has failed after. A busy machine is no failure, and
    neither is a package that is not installed.
    """
    before, after = (side.cells[cell].outcome if cell in side.cells else None for side in sides)
    if before is None or after is None or not before.ok:
        return False
    return not after.settled and after.status not in (Status.UNSETTLED, Status.UNSUPPORTED)


def _settings(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The settings that differ, such as ``threads 2, then 1``; empty if none does, or if those of a
    side are not known.
    """
    if not before or not after:
        return ""
    return "; ".join(
        f"{name} {before.get(name, 'not set')}, then {after.get(name, 'not set')}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def _order(cell: Cell) -> tuple[object, ...]:
    return (cell.workload, cell.batch_size, cell.variant, cell.mode)


def _prior(name: str, sides: Sequence[Side]) -> Prior | None:
    """How much the launches of all cells differ in a quantity, or their rounds in its factor; None
    where too few have two.
    """
    if QUANTITIES[name].drifts:
        both = [cell for cell in sides[0].cells if cell in sides[1].cells]
        found = [
            Logs.of(_factors(cell, one, sides)) for cell in both for one in _sources(name, cell)
        ]
    else:
        found = [
            side.logs(cell, one)
            for side in sides
            for cell in side.cells
            for one in _sources(name, cell)
        ]
    samples = [logs for logs in found if logs is not None and logs.number > 1]
    prior = statistics.prior_spread(
        [logs.variance for logs in samples], [logs.number - 1 for logs in samples]
    )
    return prior and prior._replace(degrees=min(prior.degrees, MOST_PRIOR_DEGREES))


def _sources(name: str, cell: Cell) -> list[str]:
    """The quantities whose spread in the cell tells about the spread of that quantity."""
    quantity = QUANTITIES[name]
    return [one for one in (name, quantity.spreads_as) if one and quantity.concerns(cell)]
