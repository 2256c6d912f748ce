"""How a service starts: each way of a model, and which of them is the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from ..cell import Cell
from ..measurement import Launch, Started
from ..results.records import Record
from . import statistics
from .payoff import Payoff, fastest, payoff
from .statistics import Interval
from .summary import Row, row

PHASES = (
    *("interpreter", "imports", "model", "weights and inputs"),
    *("artefacts", "compiler", "first call"),
)
"""The phases of a process until its first result, in their order. A process has some of them."""


class Way(NamedTuple):
    """One way to start: its figures, and what the compiled processes did.

    ``row``: its times are those to the first result. ``phases_s``: seconds of the phases of
    `PHASES`, medians over launches. Empty, None or "" for a way that has no numbers.
    """

    row: Row
    phases_s: dict[str, float]
    artefact_bytes: int | None
    loader: str


class Model(NamedTuple):
    """A model with all its ways.

    ``cell``: without a start. ``eager_phases_s``: see `Way`, over the launches of all ways.
    """

    cell: Cell
    eager_phases_s: dict[str, float]
    ways: list[Way]

    @property
    def fastest(self) -> list[Way]:
        """The compiled way that starts fastest, then those that cannot be told from it.

        The first is one that surely beats eager; without any, one that may.
        """
        known = [(way.row.ratio, way) for way in self.ways if way.row.ratio is not None]

        def among(*pays: Payoff) -> list[Way]:
            return fastest(known, lambda ratio: payoff(ratio) in pays)

        return among(Payoff.GAIN) or among(Payoff.UNKNOWN) or among(*Payoff)

    @property
    def eager_s(self) -> Interval | None:
        """Seconds to the first result in eager, beside the fastest way; None without any."""
        return self.fastest[0].row.eager_s if self.fastest else None

    @property
    def payoff(self) -> Payoff:
        """The fastest compiled way compared with eager."""
        return payoff(self.fastest[0].row.ratio) if self.fastest else Payoff.UNKNOWN


def models(records: Iterable[Record]) -> list[Model]:
    """The models whose starts were measured, or tried, in the order of the records."""
    by_model: dict[Cell, list[Record]] = {}
    for record in records:
        cell = record.measurement.cell
        if cell.start:
            plain = msgspec.structs.replace(cell, start="")
            by_model.setdefault(plain, []).append(record)
    return [_model(cell, of_model) for cell, of_model in by_model.items()]


def _model(cell: Cell, records: Sequence[Record]) -> Model:
    eager = [launch.eager_start for record in records for launch in _counted(record)]
    return Model(cell, _phases(eager), [_way(record) for record in records])


def _counted(record: Record) -> list[Launch]:
    """The launches that count; none of a failed cell."""
    measurement = record.measurement
    return statistics.counted(measurement.launches) if measurement.outcome.ok else []


def _way(record: Record) -> Way:
    started = [launch.start for launch in _counted(record)]
    known = next((one for one in started if one is not None), None)
    return Way(
        row(record),
        _phases(started),
        known.artefact_bytes if known else None,
        known.loader if known else "",
    )


def _phases(started: Sequence[Started | None]) -> dict[str, float]:
    known = [one.phases_s for one in started if one is not None]
    return {
        name: median(phases[name] for phases in known if name in phases)
        for name in PHASES
        if any(name in phases for phases in known)
    }
