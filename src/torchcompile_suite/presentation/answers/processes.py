"""Whole processes: how a service starts fastest, and whether its memory grows with its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...analysis.growth import Growing, Grows, growing
from ...analysis.payoff import Payoff
from ...analysis.starts import PHASES, Model, models
from ...analysis.statistics import Interval
from ...cell import Cell
from ...measurement import Measurement
from ...modes import EAGER
from ...results.records import Record
from ..sheets import Sheet, ended
from ..wording import plural, ratio
from .common import NOTHING, Answer, without_number

_MEBIBYTE = 2**20
_SAID = {**{verdict: verdict.value for verdict in Grows}, Grows.UNKNOWN: "may grow or not"}


def starts(records: Sequence[Record]) -> Answer:
    """From the start of a process to its first result: the fastest start of each model.

    A line for eager, and one for each way.
    """
    found = models(records)
    failed = sum(
        way.row.latency_s is None for model in found if model.fastest for way in model.ways
    )
    sentence = "; ".join(map(_fastest, found)) + "." if found else NOTHING
    sentence += without_number(failed)
    known = [of for model in found for of in _phases(model)]
    phases = [name for name in PHASES if any(name in of for of in known)]
    figures = ["first result s [95 %]", "of eager's time", "found MB"]
    figures += [f"{name} s" for name in phases]
    lines = [line for model in found for line in _start_lines(model, phases)]
    columns = ["model", "batch", "start", *figures, "loaded by"]
    return Answer(sentence, Sheet(columns, frozenset(("batch", *figures)), lines))


def _phases(model: Model) -> list[dict[str, float]]:
    """The phases of eager and of each way."""
    return [model.eager_phases_s, *(way.phases_s for way in model.ways)]


def _fastest(model: Model) -> str:
    name = model.cell.workload
    if not model.fastest or model.eager_s is None:
        return f"{name}: no start has a number ({model.ways[0].row.outcome})"
    first, *others = model.fastest
    eager, seconds = _seconds(model.eager_s), _seconds(first.row.latency_s)
    way = f"{first.row.cell.start} ({seconds}, {ratio(first.row.ratio)} times eager's time)"
    if model.payoff is Payoff.GAIN:
        text = f"{name} starts fastest with {way}; eager: {eager}"
    elif model.payoff is Payoff.LOSS:
        text = f"{name} starts fastest in eager ({eager}); compiled with {way}"
    elif model.payoff is Payoff.NONE:
        text = f"{name} starts no faster with {way} than in eager ({eager})"
    else:
        text = f"{name}: cannot tell whether it starts faster in eager ({eager}) or with {way}"
    if others:
        text += f", and no clear difference to {', '.join(one.row.cell.start for one in others)}"
    # What a compiled start takes that finds nothing.
    rest = [way for way in model.ways if way is not first and way.row.latency_s]
    if uncached := next((way for way in rest if way.row.cell.start == "uncached"), None):
        text += f"; with nothing cached {_seconds(uncached.row.latency_s)}"
    return text


def _seconds(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval:.2f} s"


def _start_lines(model: Model, phases: Sequence[str]) -> list[list[str]]:
    place = [model.cell.workload, str(model.cell.batch_size)]
    lines = []
    if model.eager_s is not None:
        known = _phase_columns(model.eager_phases_s, phases)
        lines.append([*place, EAGER, f"{model.eager_s:.2f}", "", "", *known, ""])
    for way in model.ways:
        if way.row.latency_s is None:
            figures = [str(way.row.outcome), *[""] * (len(phases) + 3)]
        else:
            found = "" if way.artefact_bytes is None else f"{way.artefact_bytes / 1e6:.1f}"
            figures = [f"{way.row.latency_s:.2f}", ratio(way.row.ratio), found]
            figures += [*_phase_columns(way.phases_s, phases), way.loader]
        lines.append([*place, way.row.cell.start, *figures])
    return lines


def _phase_columns(phases_s: Mapping[str, float], phases: Sequence[str]) -> list[str]:
    return [f"{phases_s[name]:.2f}" if name in phases_s else "" for name in phases]


class _Watched(NamedTuple):
    """The two sides of a cell; None where there are no samples."""

    measurement: Measurement
    compiled: Growing | None
    eager: Growing | None

    @property
    def cell(self) -> Cell:
        return self.measurement.cell

    @property
    def shapes(self) -> str:
        shapes = self.cell.shapes
        return "fixed shapes" if shapes == "static" else f"changing shapes ({shapes})"

    @property
    def name(self) -> str:
        return f"{self.cell.workload} with {self.shapes}"


def memory(records: Sequence[Record]) -> Answer:
    """In which cells the memory of a compiled process grows; two lines for each cell."""
    watched = [
        _watched(record.measurement)
        for record in records
        if record.measurement.cell.protocol == "many-calls"
    ]
    held = "resident" if all(one.cell.device == "cpu" for one in watched) else "device"
    figures = ["calls", f"{held} MiB: first", "last"]
    figures += ["growth B a call [95 %]", "allocated B a call [95 %]"]
    columns = ["model", "batch", "shapes", "side", *figures, "verdict", "graphs", "at the limit"]
    lines = [line for one in watched for line in _memory_lines(one)]
    sheet = Sheet(columns, frozenset(("batch", *figures, "graphs")), lines)
    return Answer(_of_memory(watched), sheet)


def _watched(measurement: Measurement) -> _Watched:
    launches = measurement.launches if measurement.outcome.ok else []
    device = measurement.cell.device
    return _Watched(
        measurement, growing(launches, "mode", device), growing(launches, "eager", device)
    )


def _of_memory(watched: Sequence[_Watched]) -> str:
    if not watched:
        return NOTHING
    known = [(one, one.compiled) for one in watched if one.compiled is not None]
    if not known:
        return f"No cell has a number: {watched[0].measurement.outcome}."
    most = max(compiled.calls for _, compiled in known)
    parts = []
    for verdict in Grows:
        of_verdict = [(one, compiled) for one, compiled in known if compiled.grows is verdict]
        if of_verdict:
            parts.append(f"{_SAID[verdict]} in {len(of_verdict)} ({_cells(of_verdict)})")
    said = f"{', '.join(parts)} of {plural(len(known), 'cell')}"
    (verdict, *others) = {compiled.grows for _, compiled in known}
    if len(known) > 1 and not others:
        each = "any" if verdict is Grows.NO else "each"
        said = f"{_SAID[verdict]} in {each} of {len(known)} cells: {_cells(known)}"
    on_host = all(one.cell.device == "cpu" for one, _ in known)
    text = (
        f"Over up to {most:,} calls, the {'resident set' if on_host else 'device memory'} of a "
        f"compiled model {said}"
    )
    # What happened where Dynamo reached its limit of graphs.
    for one, samples in ((one, compiled.samples) for one, compiled in known):
        if samples.at_limit:
            text += (
                f"; {one.name} reached Dynamo's limit of {samples.limit}: {samples.graphs} graphs "
                f"for {samples.shapes} shapes, and the others run in eager"
            )
    return f"{text}.{without_number(len(watched) - len(known))}"


def _cells(of_verdict: Sequence[tuple[_Watched, Growing]]) -> str:
    """Each cell with its growth, and eager's beside it."""
    texts = []
    for one, compiled in of_verdict:
        eager = f", eager {_bytes(one.eager.judged)}" if one.eager is not None else ""
        texts.append(f"{one.name}: {_bytes(compiled.judged)} bytes a call{eager}")
    return "; ".join(texts)


def _memory_lines(watched: _Watched) -> list[list[str]]:
    place = [watched.cell.workload, str(watched.cell.batch_size), watched.shapes]
    if watched.compiled is None:
        reason = ended(watched.measurement) or "no samples"
        return [[*place, "compiled", reason, *[""] * 7]]
    sides = {"eager": watched.eager, "compiled": watched.compiled}
    return [[*place, name, *_side(side)] for name, side in sides.items() if side is not None]


def _side(side: Growing) -> list[str]:
    """The columns from the calls to what happened at Dynamo's limit."""
    graphs = side.samples.graphs
    return [
        f"{side.calls:,}",
        f"{side.first_bytes / _MEBIBYTE:,.1f}",
        f"{side.last_bytes / _MEBIBYTE:,.1f}",
        _bytes(side.judged),
        "" if side.allocated is None else _bytes(side.allocated),
        side.grows.value,
        "" if graphs is None else str(graphs),
        side.samples.at_limit,
    ]


def _bytes(interval: Interval) -> str:
    return f"{interval:,.0f}" if abs(interval.value) >= 100 else f"{interval:,.1f}"
