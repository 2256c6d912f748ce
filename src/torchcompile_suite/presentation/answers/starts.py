"""How does a service start fastest: from the start of its process to its first result?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...analysis.payoff import Payoff
from ...analysis.starts import PHASES, Model, Way, models
from ...analysis.statistics import Interval
from ...modes import EAGER
from ...results.records import Record
from ..sheets import Sheet, no_number
from ..wording import ratio
from . import Answer, _parts

QUESTION = "How does a service start fastest?"

_SECONDS, _RATIO, _FOUND = "first result s [95 %]", "of eager's time", "found MB"


def answer(records: Sequence[Record]) -> Answer:
    """The fastest start of each model; a line for eager, and one for each way."""
    found = models(records)
    sentence = "; ".join(map(_sentence, found)) + "." if found else _parts.NOTHING
    phases = [
        name for name in PHASES if any(name in of for model in found for of in _all_phases(model))
    ]
    figures = [_SECONDS, _RATIO, _FOUND, *(f"{name} s" for name in phases)]
    lines = [line for model in found for line in _lines(model, phases)]
    columns = ["model", "batch", "start", *figures, "loaded by"]
    return Answer(sentence, Sheet(columns, frozenset(("batch", *figures)), lines))


def _all_phases(model: Model) -> list[dict[str, float]]:
    return [model.eager_phases_s, *(way.phases_s for way in model.ways)]


def _sentence(model: Model) -> str:
    name = model.cell.workload
    if not model.fastest or model.eager_s is None:
        return f"{name}: no start has a number ({model.ways[0].row.outcome})"
    first, *others = model.fastest
    eager = f"eager: {_seconds(model.eager_s)}"
    way = f"{_start(first)} ({_seconds(first.row.latency_s)}, {ratio(first.row.ratio)} of eager's)"
    if model.payoff is Payoff.GAIN:
        text = f"{name} starts fastest with {way}; {eager}"
    elif model.payoff is Payoff.LOSS:
        text = f"{name} starts fastest in eager ({_seconds(model.eager_s)}); compiled with {way}"
    else:
        text = f"{name} starts as fast in eager ({_seconds(model.eager_s)}) as with {way}"
    if others:
        text += f", and no clear difference to {', '.join(map(_start, others))}"
    return text + _without_cache(model, first)


def _without_cache(model: Model, first: Way) -> str:
    """What a compiled start takes that finds nothing."""
    for way in model.ways:
        if way is not first and _start(way) == "uncached" and way.row.latency_s is not None:
            return f"; with nothing cached {_seconds(way.row.latency_s)}"
    return ""


def _start(way: Way) -> str:
    return way.row.cell.start


def _seconds(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval:.2f} s"


def _lines(model: Model, phases: Sequence[str]) -> list[list[str]]:
    place = [model.cell.workload, str(model.cell.batch_size)]
    lines = []
    if model.eager_s is not None:
        seconds = f"{model.eager_s:.2f}"
        lines.append([*place, EAGER, seconds, "", "", *_of(model.eager_phases_s, phases), ""])
    for way in model.ways:
        if way.row.latency_s is None:
            lines.append([*place, _start(way), *no_number(way.row.outcome, len(phases) + 4)])
            continue
        found = "" if way.artefact_bytes is None else f"{way.artefact_bytes / 1e6:.1f}"
        figures = [f"{way.row.latency_s:.2f}", ratio(way.row.ratio), found]
        lines.append([*place, _start(way), *figures, *_of(way.phases_s, phases), way.loader])
    return lines


def _of(phases_s: Mapping[str, float], phases: Sequence[str]) -> list[str]:
    return [f"{phases_s[name]:.2f}" if name in phases_s else "" for name in phases]
