"""The recorded results that claims are judged by, looked up by cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from ... import matrix, workloads
from ...cell import Cell, Compiled, Generated, Measurement, Profile, Status
from .. import change, statistics
from ..statistics import Interval


class Missing(Exception):
    """The results cannot decide a claim; the message says what is missing."""


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
        self._generated = {matrix.on_any_device(one.cell): one for one in generated}
        self.device = device

    def measured(self, cell: Cell) -> Measurement:
        """The measurement of the cell, which has numbers."""
        cell = self._here(cell)
        measurement = self._measurements.get(cell)
        if measurement is None:
            raise Missing(f"not measured: {cell}")
        outcome = measurement.outcome
        if not outcome.ok:
            raise Missing(f"{cell}: {outcome}")
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
        try:
            self.measured(cell)
        except Missing:
            return False
        return True

    def family(self, family: str, mode: str = "default") -> list[Cell]:
        """The cells of a family of workloads that have numbers, at batch 1 in the mode."""
        cells = [
            cell
            for name in workloads.names()
            if workloads.get(name).family == family and self.has(cell := Cell(name, 1, mode))
        ]
        if not cells:
            raise Missing(f"no {family} workload was measured in mode {mode}")
        return cells

    def ratio(self, cell: Cell) -> Interval:
        """Time in the mode over the time of the baseline."""
        measurement = self.measured(cell)
        return statistics.measured_ratio(measurement.launches, measurement.sequential)

    def speedup(self, cell: Cell) -> Interval:
        """Time of the baseline over the time in the mode."""
        return statistics.inverse(self.ratio(cell))

    def mean_speedup(self, cells: Iterable[Cell]) -> Interval:
        """Geometric mean of the speedups, of at least one cell."""
        return statistics.geometric_mean([self.speedup(cell) for cell in cells])

    def latency(self, cell: Cell, eager: bool = False) -> Interval:
        """Seconds a call in the mode, or with ``eager`` in the baseline."""
        figure = statistics.eager_latency_of if eager else statistics.latency_of
        launches = statistics.counted(self.measured(cell).launches)
        return statistics.geometric_interval([figure(launch) for launch in launches])

    def over(self, one: Interval, other: Interval) -> Interval:
        """The quotient of two times from different measurements.

        The interval includes the drift between the two (`change.drift_between`). Raises Missing if
        that is unknown.
        """
        drift = change.drift_between([self._side])
        if math.isnan(drift.variance):
            raise Missing("no eager time was measured twice, so the between-run drift is unknown")
        return statistics.quotient(one, other, more=1.96 * math.sqrt(2 * drift.variance))

    def compiled(self, cell: Cell) -> Compiled:
        """What the compiler captured and generated."""
        compiled = self.measured(cell).compiled
        if compiled is None:
            raise Missing(f"the record of {cell} does not say what was compiled")
        return compiled

    def count(self, cell: Cell, name: str) -> int:
        """A field of `Compiled` that is a count, by its JSON name."""
        compiled = self.compiled(cell)
        value = compiled.value(name)
        if value is None:
            raise Missing(f"{cell}: {name}: {compiled.unknown.get(name, 'unknown')}")
        return int(value)

    def generated(self, workload: str, mode: str = "default") -> Generated:
        """What was generated for a forward pass at batch 1 on `matrix.GENERATED_TARGET`."""
        cell = matrix.CODEGEN.cell(workload, mode, matrix.GENERATED_TARGET)
        measurement = self._generated.get(cell)
        if measurement is None:
            raise Missing(f"no code was generated: {cell}")
        if measurement.generated is None:
            outcome = measurement.outcome
            raise Missing(f"{cell}: {outcome}")
        return measurement.generated

    def captures(self) -> Iterator[Measurement]:
        """What was measured, and what was generated for targets, failed ones, too."""
        yield from self._measurements.values()
        yield from self._generated.values()

    def profile(self, cell: Cell) -> Profile:
        """The time line of the accelerator."""
        profile = self.compiled(cell).profile
        if profile is None:
            raise Missing(f"no time line of {self._here(cell)}")
        return profile

    def first_call_s(self, cell: Cell) -> float:
        """Seconds of the first compiled call, at the cold start."""
        return statistics.first_call_of(self.measured(cell).launches[0])

    def warm_compile(self, cell: Cell) -> Interval:
        """Seconds lost to compiling with Inductor's cache, over at least two warm launches."""
        costs = statistics.compile_costs(self.measured(cell).launches, "warm")
        # A launch that compiled nothing has no logarithm.
        costs = [cost for cost in costs if cost > 0]
        if len(costs) < 2:
            raise Missing(f"fewer than two warm launches of {cell}")
        return statistics.geometric_interval(costs)

    def cold_compile(self, cell: Cell) -> float:
        """Seconds lost to compiling at the cold start: one launch, so there is no interval."""
        costs = statistics.compile_costs(self.measured(cell).launches, "cold")
        if not costs:
            raise Missing(f"no cold launch of {cell}")
        return costs[0]
