"""Does the memory of a process grow over thousands of calls, and by how much a call?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...analysis.growth import Growing, Grows, growing
from ...analysis.statistics import Interval
from ...cell import Cell, Measurement
from ...results.records import Record
from ..sheets import Sheet
from ..wording import plural
from . import Answer, _parts

QUESTION = "Does the memory of a process grow with its calls?"

_MEBIBYTE = 2**20


class _Watched(NamedTuple):
    """The two sides of a cell; None where there are no samples."""

    measurement: Measurement
    compiled: Growing | None
    eager: Growing | None

    @property
    def on_host(self) -> bool:
        """Whether the memory is the host's."""
        return self.measurement.cell.device == "cpu"

    @property
    def name(self) -> str:
        cell = self.measurement.cell
        return f"{cell.workload} with {_shapes(cell)}"


def answer(records: Sequence[Record]) -> Answer:
    """In which cells the memory of a compiled process grows; two lines for each cell."""
    watched = [
        _watched(record.measurement)
        for record in records
        if record.measurement.cell.protocol == "many-calls"
    ]
    lines = [line for one in watched for line in _lines(one)]
    on_host = all(one.on_host for one in watched)
    figures = [
        *("calls", f"{'resident' if on_host else 'device'} MiB: first", "last"),
        *("growth B a call [95 %]", "allocated B a call [95 %]"),
    ]
    columns = ["model", "batch", "shapes", "side", *figures, "verdict", "graphs", "at the limit"]
    sheet = Sheet(columns, frozenset(("batch", *figures, "graphs")), lines)
    return Answer(_sentence(watched), sheet)


def _watched(measurement: Measurement) -> _Watched:
    if not measurement.outcome.ok:
        return _Watched(measurement, None, None)
    launches, device = measurement.launches, measurement.cell.device
    return _Watched(
        measurement, growing(launches, "mode", device), growing(launches, "eager", device)
    )


def _sentence(watched: Sequence[_Watched]) -> str:
    known = [(one, one.compiled) for one in watched if one.compiled is not None]
    if not known:
        failed = next((one.measurement.outcome for one in watched), None)
        if failed is None:
            return _parts.NOTHING
        return f"No cell has a number: {failed}."
    most = max(compiled.calls for _, compiled in known)
    parts = []
    for verdict in Grows:
        of_verdict = [(one, compiled) for one, compiled in known if compiled.grows is verdict]
        if of_verdict:
            parts.append(f"{verdict.value} in {len(of_verdict)} ({_cells(of_verdict)})")
    memory = "resident set" if all(one.on_host for one, _ in known) else "device memory"
    text = f"Over up to {most:,} calls, the {memory} of a compiled model {', '.join(parts)}"
    return f"{text} of {plural(len(known), 'cell')}{_at_limit(known)}."


def _cells(of_verdict: Sequence[tuple[_Watched, Growing]]) -> str:
    """Each cell with its growth, and eager's beside it."""
    texts = []
    for one, compiled in of_verdict:
        eager = f", eager {_bytes(one.eager.judged)}" if one.eager is not None else ""
        texts.append(f"{one.name}: {_bytes(compiled.judged)} bytes a call{eager}")
    return "; ".join(texts)


def _at_limit(known: Sequence[tuple[_Watched, Growing]]) -> str:
    """What happened where Dynamo reached its limit of graphs."""
    reached = [(one, compiled.samples) for one, compiled in known if compiled.samples.at_limit]
    return "".join(
        f"; {one.name} reached Dynamo's limit of {samples.limit}: {samples.graphs} graphs for "
        f"{samples.shapes} shapes, and the others run in eager"
        for one, samples in reached
    )


def _lines(watched: _Watched) -> list[list[str]]:
    cell = watched.measurement.cell
    place = [cell.workload, str(cell.batch_size), _shapes(cell)]
    outcome = watched.measurement.outcome
    if watched.compiled is None:
        reason = str(outcome) if not outcome.ok else "no samples"
        return [[*place, "compiled", reason, *[""] * 7]]
    lines = []
    for side, growing_ in (("eager", watched.eager), ("compiled", watched.compiled)):
        if growing_ is None:
            continue
        samples = growing_.samples
        lines.append(
            [
                *(*place, side, f"{growing_.calls:,}"),
                f"{growing_.first_bytes / _MEBIBYTE:,.1f}",
                f"{growing_.last_bytes / _MEBIBYTE:,.1f}",
                _bytes(growing_.judged),
                "" if growing_.allocated is None else _bytes(growing_.allocated),
                growing_.grows.value,
                "" if samples.graphs is None else str(samples.graphs),
                samples.at_limit,
            ]
        )
    return lines


def _shapes(cell: Cell) -> str:
    return "fixed shapes" if cell.shapes == "static" else f"changing shapes ({cell.shapes})"


def _bytes(interval: Interval) -> str:
    return f"{interval:,.0f}" if abs(interval.value) >= 100 else f"{interval:,.1f}"
