"""The recorded results that claims are judged by, looked up by cell, and what rules share.

A comparison returns True, False, or None if the interval does not decide. "About X" means within
15 % of X, unless the claim gives a range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, TypeVar

import msgspec

from ... import matrix, workloads
from ...cell import Cell
from ...compiled import Compiled, Profile
from ...generated import Generated
from ...measurement import Measurement, Status
from .. import change, statistics
from ..statistics import Interval

ABOUT = 0.15

_T = TypeVar("_T")


class Missing(Exception):
    """The results cannot decide a claim; the message says what is missing."""


def known(value: _T | None, missing: str) -> _T:
    """The value; raises Missing with that message if there is none."""
    if value is None:
        raise Missing(missing)
    return value


def some(values: Iterable[_T], missing: str) -> list[_T]:
    """All values; raises Missing with that message if there are none."""
    return known(list(values) or None, missing)


class Evidence:
    """The measurements of one release on one machine.

    All methods replace the device of the cell by the machine's. They raise Missing if the cell was
    not measured, has no numbers, or lacks what is asked for.
    """

    def __init__(
        self,
        measurements: Iterable[Measurement],
        device: str,
        generated: Iterable[Measurement] = (),
    ) -> None:
        """Of two measurements of a cell, the last one counts. ``generated``: those of cells with a
        target, of any machine.
        """
        self._side = change.Side("", measurements)
        self._measurements = self._side.cells
        # Where a cell failed on one machine and not on another, the code counts.
        ordered = sorted(generated, key=lambda one: one.outcome.ok)
        self._generated = {matrix.on_any_device(one.cell): one for one in ordered}
        self.device = device

    def measured(self, cell: Cell) -> Measurement:
        """The measurement of the cell, which has numbers."""
        cell = self._here(cell)
        measurement = self._measurements.get(cell)
        if measurement is None:
            raise Missing(f"not measured: {cell}")
        if not measurement.outcome.ok:
            raise Missing(f"{cell}: {measurement.outcome}")
        return measurement

    def _here(self, cell: Cell) -> Cell:
        return msgspec.structs.replace(cell, device=self.device)

    def wrong(self, cell: Cell) -> str:
        """Why the compiled output was wrong; empty if it was right or not measured."""
        measurement = self._measurements.get(self._here(cell))
        if measurement is None or measurement.outcome.status is not Status.WRONG_RESULT:
            return ""
        return measurement.outcome.reason

    def has(self, cell: Cell) -> bool:
        """Whether the cell has numbers."""
        measurement = self._measurements.get(self._here(cell))
        return measurement is not None and measurement.outcome.ok

    def family(self, family: str, mode: str = "default") -> list[Cell]:
        """The cells of a family of workloads that have numbers, at batch 1 in the mode."""
        names = [name for name in workloads.names() if workloads.get(name).family == family]
        cells = (Cell(name, 1, mode) for name in names)
        return self.having(cells, f"no {family} workload was measured in mode {mode}")

    def having(self, cells: Iterable[Cell], missing: str) -> list[Cell]:
        """Those that have numbers; raises Missing with that message if there are none."""
        return some(filter(self.has, cells), missing)

    def ratio(self, cell: Cell) -> Interval:
        """Time in the mode over the time of the baseline."""
        measurement = self.measured(cell)
        return statistics.measured_ratio(measurement.launches, measurement.sequential)

    def speedup(self, cell: Cell) -> Interval:
        """Time of the baseline over the time in the mode."""
        return statistics.inverse(self.ratio(cell))

    def mean_speedup(self, cells: Iterable[Cell]) -> Interval:
        """Geometric mean of the speedups, of at least one cell. Of cells with one launch, whose
        interval is not known, only if there are no others.
        """
        return statistics.geometric_mean(statistics.having(map(self.speedup, cells)))

    @property
    def accelerator(self) -> str:
        """The name of the accelerator; empty on a CPU, or if no measurement knows it."""
        of_all = (one.environment for one in self._measurements.values())
        return next((one.device_name for one in of_all if one and one.accelerator), "")

    def latency(self, cell: Cell, eager: bool = False) -> Interval:
        """Seconds a call in the mode, or with ``eager`` in the baseline."""
        measured = statistics.measured_eager if eager else statistics.measured_latency
        return measured(self.measured(cell).launches)

    def over(self, one: Interval, other: Interval) -> Interval:
        """The quotient of two times from different measurements.

        The interval includes the drift between the two. Raises Missing if that is unknown.
        """
        return statistics.quotient(one, other, more=math.sqrt(2) * self.drift)

    @cached_property
    def drift(self) -> float:
        """How much times of two runs differ: half-width of a log (`change.drift_between`). Raises
        Missing if that is unknown.
        """
        drift = change.drift_between([self._side])
        if math.isnan(drift):
            raise Missing("no eager time was measured twice, so the drift is unknown")
        return drift

    def compiled(self, cell: Cell) -> Compiled:
        """What the compiler captured and generated."""
        missing = f"the record of {cell} does not say what was compiled"
        return known(self.measured(cell).compiled, missing)

    def count(self, cell: Cell, name: str) -> int:
        """A field of `Compiled` that is a count, by its JSON name."""
        compiled = self.compiled(cell)
        missing = f"{cell}: {name}: {compiled.unknown.get(name, 'unknown')}"
        return int(known(getattr(compiled, name), missing))

    def generated(self, workload: str, mode: str = "default") -> Generated:
        """What was generated for a forward pass at batch 1 on `matrix.GENERATED_TARGET`."""
        cell = matrix.CODEGEN.cell(workload, mode, matrix.GENERATED_TARGET)
        measurement = known(self._generated.get(cell), f"no code was generated: {cell}")
        return known(measurement.generated, f"{cell}: {measurement.outcome}")

    def captures(self) -> Iterator[Measurement]:
        """What was measured, and what was generated for targets, failed ones, too."""
        yield from self._measurements.values()
        yield from self._generated.values()

    def profile(self, cell: Cell) -> Profile:
        """The time line of the accelerator."""
        return known(self.compiled(cell).profile, f"no time line of {self._here(cell)}")

    def first_call_s(self, cell: Cell) -> float:
        """Seconds of the first compiled call, at the cold start."""
        return statistics.first_call_of(self.measured(cell).launches[0])

    def warm_compile(self, cell: Cell) -> Interval:
        """Seconds lost to compiling with Inductor's cache, over at least two warm launches."""
        # A launch that compiled nothing has no logarithm.
        costs = statistics.compile_costs(self.measured(cell).launches, "warm")
        costs = [cost for cost in costs if cost > 0]
        if len(costs) < 2:
            raise Missing(f"fewer than two warm launches of {cell}")
        return statistics.geometric_interval(costs)

    def cold_compile(self, cell: Cell) -> Interval:
        """Seconds lost to compiling at the cold start.

        It is one launch. The bounds are what cold compiles of one cell differ by.
        """
        costs = statistics.compile_costs(self.measured(cell).launches, "cold")
        cost_s, *_ = some(costs, f"no undisturbed cold launch of {cell}")
        return statistics.widened(Interval(cost_s, cost_s, cost_s), statistics.COLD_SPREAD)


class Finding(NamedTuple):
    """What a rule found.

    ``holds``: whether the claim holds; None if that is open, ``opened`` says why. ``reason``: the
    figures in words. ``ours``: our figure. ``interval``: our figure with its 95 % interval, which
    replaces ``ours``.
    """

    holds: bool | None
    reason: str
    ours: float | None = None
    interval: Interval | None = None
    opened: str = "the interval does not decide"


Rule = Callable[[Evidence], Finding]


class Rules(dict[str, Rule]):
    """The rules of a document by the id of the claim; calling it makes a decorator."""

    def __call__(self, claim: str) -> Callable[[Rule], Rule]:
        """Register the decorated rule for that claim."""

        def register(rule: Rule) -> Rule:
            self[claim] = rule
            return rule

        return register


def within(interval: Interval, low: float, high: float, *, slack: float = ABOUT) -> bool | None:
    """Whether a figure lies in a range.

    False if the whole interval lies outside. True if the figure lies in the range and its interval
    leaves the range by at most the slack, which is 15 %: 0 for a range that is narrower.
    """
    if interval.high < low or interval.low > high:
        return False
    near = interval.low >= low * (1 - slack) and interval.high <= high * (1 + slack)
    return True if near and low <= interval.value <= high else None


def about(interval: Interval, figure: float) -> bool | None:
    """Whether our figure lies within 15 % of the document's."""
    return within(interval, figure * (1 - ABOUT), figure * (1 + ABOUT))


def above(interval: Interval, limit: float) -> bool | None:
    """Whether the whole interval lies above a limit; False if all of it lies below."""
    if interval.low > limit:
        return True
    return False if interval.high < limit else None


def all_of(*parts: bool | None) -> bool | None:
    """Whether all parts of a claim hold: False if one does not, else None if one is open."""
    if False in parts:
        return False
    return None if None in parts else True


def any_of(*parts: bool | None) -> bool | None:
    """Whether at least one part holds: True if one does, else None if one is open."""
    if True in parts:
        return True
    return None if None in parts else False


def listed(values: Mapping[str, object], spec: str = "") -> str:
    """Names with their values, in a sentence; each value in the format ``spec``."""
    return ", ".join(f"{name} {value:{spec}}" for name, value in values.items())


def inference(workload: str, mode: str = "default", batch_size: int = 1) -> Cell:
    """The plain inference cell of a workload."""
    return Cell(workload, batch_size, mode)


def training(workload: str, dtype: str = "float32") -> Cell:
    """The training cell of a workload in mode default, without gradient accumulation."""
    return matrix.TRAINING.cell(workload, "default", dtype, 1)


def skipped(code: Generated) -> str:
    """Why graphs do not run as CUDA graphs, in brackets; empty if all do."""
    return f" ({'; '.join(code.cudagraph_skips)})" if code.cudagraph_skips else ""


def fewer_launches(evidence: Evidence, workload: str, times: float) -> Finding:
    """Whether CUDA graphs cut the launches of a call by about that factor, in generated code.

    Counts have no interval. The launches are those of the host: a CUDA graph is one. The call of a
    library is one, too, but it may launch several kernels, which documents count. So a larger
    factor in the document stays open. Before a replay, torch copies the inputs of a graph by one
    more launch, which is not counted here. So a smaller factor stays open down to half of ours.
    """
    without = evidence.generated(workload)
    launches, libraries = without.total("launches"), without.total("library_launches")
    code = evidence.generated(workload, "reduce-overhead")
    with_graphs = code.total("launches_with_cuda_graphs")
    if launches is None or not with_graphs:
        raise Missing(f"{workload}: no launches were counted")
    ours = launches / with_graphs
    holds: bool | None = times * (1 - ABOUT) <= ours <= times * (1 + ABOUT)
    more_of_libraries = libraries and ours < times * (1 - ABOUT)
    if more_of_libraries or ours / 2 * (1 - ABOUT) <= times < ours / (1 + ABOUT):
        holds = None
    return Finding(
        holds,
        f"{launches} launches of a call, {libraries} of them calls of libraries, become "
        f"{with_graphs} with CUDA graphs{skipped(code)}",
        ours=ours,
        opened="only a GPU tells what a library and the copy of inputs launch",
    )
