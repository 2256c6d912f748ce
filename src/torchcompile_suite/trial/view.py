"""A trial's answer for the terminal and for programs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ..analysis import advice, ends, statistics, summary
from ..analysis.advice import Advice
from ..analysis.payoff import break_even
from ..analysis.statistics import Interval
from ..analysis.summary import Row
from ..cell import DEFAULT_HEAP, Cell
from ..measurement import NOT_CHECKED, Measurement, Status
from ..modes import EAGER
from ..presentation import answers
from ..presentation.answers import Asked
from ..presentation.page import Mark, Part, Picture, page
from ..presentation.sheets import CELL, Sheet, cell_columns
from ..presentation.wording import milliseconds, number, plural, ratio, seconds, written
from ..results.records import Record
from .outline import Outline
from .plan import Trial, headline
from .run import TrialResult

_TIME, _SINGLE, _MEMORY = "ms a call [95 %]", "one call ms", "MiB"
_FIGURES = (
    *(_TIME, "of eager's time", "cold s", "warm s", _MEMORY, "breaks"),
    *("pays after", "time to pay"),
    _SINGLE,
)


def rows(result: TrialResult) -> list[Row]:
    """The measurements as rows, in the order of the modes."""
    return summary.rows(_records(result))


def _records(result: TrialResult) -> list[Record]:
    release = result.outline.torch.partition("+")[0]
    return [Record("", "", "", measurement, release) for measurement in result.measurements]


def answered(trial: Trial, result: TrialResult) -> tuple[Asked, answers.Answer] | None:
    """The trial's question and what the measurements answer; None if it asks whether it pays."""
    if not trial.question:
        return None
    asked = answers.get(trial.question)
    return asked, asked.answer(_records(result))


def table(result: TrialResult) -> Sheet:
    """A line for eager, then a line for each cell. The headline names the model.

    On an accelerator, the last column has the time of a call that is waited for.
    """
    measurements = {measurement.cell: measurement for measurement in result.measurements}
    no_figures = [""] * (len(_FIGURES) - 1)
    lines = []
    for row in rows(result):
        if row.cell.mode != EAGER and row.eager_s is not None:
            eager = dict.fromkeys(_FIGURES, "") | {
                _TIME: _milliseconds(row.eager_s),
                _MEMORY: number(row.eager_peak_memory_bytes, ",.0f", 2**-20),
                _SINGLE: milliseconds(row.eager_single_s),
            }
            lines.append((str(row.cell.batch_size), _eager(row.cell), *eager.values()))
        figures = (
            _figures(row, measurements[row.cell])
            if row.outcome.ok
            else [row.outcome.status.value, *no_figures]
        )
        lines.append((*cell_columns(row.cell)[1:], *figures))
    # Modes share the line of eager.
    unique = [list(line) for line in dict.fromkeys(lines)]
    columns = [*CELL[1:], *_FIGURES]
    if all(row.cell.start for row in rows(result)):
        columns = [title.replace("a call", "a start") for title in columns]
    if all(row.single_s is None for row in rows(result)):
        unique, columns = [line[:-1] for line in unique], columns[:-1]
    return Sheet(columns, frozenset(("batch", *_FIGURES)), unique)


def _eager(cell: Cell) -> str:
    """The name of the baseline, with what tells it from that of other cells."""
    names = [cell.dtype] * (cell.dtype != "float32" and cell.baseline == EAGER)
    names += [cell.allocator] * (cell.allocator != "system") + [cell.start] * bool(cell.start)
    return f"{EAGER}: {', '.join(names)}" if names else EAGER


def _figures(row: Row, measurement: Measurement) -> list[str]:
    compiled = measurement.compiled
    paid = break_even(row)
    return [
        "-" if row.latency_s is None else _milliseconds(row.latency_s),
        "cannot tell" if row.ratio and advice.disagreement(row.ratio) else ratio(row.ratio),
        seconds(row.cold_compile_s),
        seconds(row.warm_compile_s),
        number(row.peak_memory_bytes, ",.0f", 2**-20),
        "-" if compiled is None else str(len(compiled.graph_breaks)),
        str(paid),
        paid.duration,
        milliseconds(row.single_s),
    ]


def _milliseconds(interval: Interval) -> str:
    """The time, without an interval that says nothing."""
    if advice.disagreement(interval):
        return f"about {milliseconds(interval)}"
    return f"{interval.scaled(1e3):.3g}"


def sentences(result: TrialResult) -> list[str]:
    """The verdict: one sentence for each way to call the model (batch size, shapes, allocator), and
    what the state of the heap changes in it.
    """
    again = "continue with --resume and a longer --budget."
    measurements = {measurement.cell: measurement for measurement in result.measurements}
    both = {each.cell: each for each in ends.both_ends(result.measurements)}
    ways: dict[tuple[int, str, str], list[Row]] = {}
    for row in rows(result):
        if msgspec.structs.replace(row.cell, allocator="system") in both and (
            row.cell.allocator == DEFAULT_HEAP
        ):
            continue  # a sentence of its settled twin
        way = row.cell.batch_size, row.cell.shapes, row.cell.allocator
        ways.setdefault(way, []).append(row)
    texts = []
    for (size, shapes, allocator), own in ways.items():
        names = [f"batch {size}"]
        names += [shapes] * (shapes != "static") + [allocator] * (allocator != "system")
        way_name = f"{', '.join(names)}: " if len(ways) > 1 else ""
        unchecked = _unchecked([measurements[row.cell] for row in own])
        texts.append(way_name + advice.sentence(own, again) + unchecked)
        texts += [
            way_name + share
            for row in own
            if row.outcome.ok and (share := advice.in_graphs(measurements[row.cell]))
        ][:1]
        for row in own:
            if row.cell in both and row.cell.mode != EAGER:
                name = "compiled" if len(own) == 1 else advice.named(row.cell)
                texts += [way_name + text for text in ends.sentences(both[row.cell], name)]
    return texts


def _unchecked(measurements: Iterable[Measurement]) -> str:
    """What of the accuracy was not checked, behind a verdict; empty if all was."""
    said = [
        note
        for measurement in measurements
        for note in measurement.notes
        if note.startswith(NOT_CHECKED)
    ]
    return "".join(f" {note[:1].upper()}{note[1:]}." for note in dict.fromkeys(said))


def notes(result: TrialResult) -> list[str]:
    """What a reader has to know about the model and the measurement, one line each.

    For example: that the model was compiled already, outputs of a type that cannot be compared, or
    NaN in eager's output. A note that does not hold for all cells names its cell.
    """
    cells: dict[str, list[Cell]] = {}
    for measurement in result.measurements:
        for note in (*measurement.notes, *statistics.of_the_host(measurement.launches)):
            cells.setdefault(note, []).append(measurement.cell)
    lines = list(result.outline.notes)
    if any(measurement.cell.way == "as-given" for measurement in result.measurements):
        lines.append("as-given: what your code compiles, in its own mode")
    for note, concerned in cells.items():
        if len(concerned) == len(result.measurements):
            lines.append(note)
        else:
            names = [f"{advice.named(cell)} at batch {cell.batch_size}" for cell in concerned]
            lines.append(f"{', '.join(names)}: {note}")
    return lines


def failures(result: TrialResult) -> list[str]:
    """The reasons of failed cells that the sentences do not name."""
    named = "\n".join(sentences(result))
    return [
        f"Failed at batch {row.cell.batch_size}, {advice.named(row.cell)}: {row.outcome}"
        for row in rows(result)
        if not row.outcome.ok
        and not (row.outcome.reason and row.outcome.reason.lower() in named.lower())
    ]


def advices(trial: Trial, result: TrialResult) -> list[Advice]:
    """What to change in the model or its use."""
    return advice.advice(
        result.measurements,
        # Models of a library come in training mode, and their users have no code to change.
        came_training=result.outline.training
        and trial.target is not None
        and trial.target.kind not in ("timm", "hf", "workload"),
        varying=trial.dynamic,
    )


class Question(Struct):
    """The answer to the question of a trial: a sentence, and the table that it comes from."""

    name: str
    sentence: str
    columns: list[str]
    rows: list[list[str]]


class Tried(Struct):
    """The whole answer of ``torchcompile-suite try``.

    ``question`` is null if the trial asks whether compiling pays.
    """

    workload: str
    outline: Outline
    interrupted: bool
    question: Question | None
    sentences: list[str]
    notes: list[str]
    advice: list[Advice]
    rows: list[Row]
    measurements: list[Measurement]


def as_json(trial: Trial, result: TrialResult) -> bytes:
    """The whole answer as JSON."""
    told = answered(trial, result)
    if told is None:
        question, said = None, sentences(result)
    else:
        asked, (sentence, sheet) = told
        question, said = Question(asked.name, sentence, sheet.columns, sheet.lines), [sentence]
    content = Tried(
        workload=trial.workload,
        outline=result.outline,
        interrupted=result.interrupted,
        question=question,
        sentences=said,
        notes=notes(result),
        advice=advices(trial, result),
        rows=rows(result),
        measurements=result.measurements,
    )
    return written(content)


def as_html(trial: Trial, result: TrialResult, command: str) -> bytes:
    """The whole answer as a page in one file. ``command``: what the user has typed."""
    told = answered(trial, result)
    said, sheets = (
        (sentences(result), []) if told is None else ([told[1].sentence], [told[1].sheet])
    )
    advised = [
        f"{f'{one.where}: ' if one.where else ''}{one.what.rstrip('.')}. Remedy: {one.remedy}."
        for one in advices(trial, result)
    ]
    parts = [
        Part("Figures", ["In brackets: 95 % intervals over launches."], [*sheets, table(result)]),
        Part("Worth knowing", [*notes(result), *failures(result)]),
        Part("Worth changing", advised),
        Part("How it was measured", _how(result, command)),
    ]
    title = f"Does torch.compile pay for {trial.workload}?"
    if told is not None:
        title = f"{trial.workload}: {told[0].title}"
    return page(title, [headline(trial, result.outline), *said], _picture(result), parts)


def _picture(result: TrialResult) -> Picture:
    marks = [
        Mark(
            label=f"batch {row.cell.batch_size}"
            + (f", {row.cell.variant}" * bool(row.cell.variant)),
            series=row.cell.mode,
            value=row.ratio.value,
            low=row.ratio.low if row.ratio.known else None,
            high=row.ratio.high if row.ratio.known else None,
            words=f"{row.cell}: {ratio(row.ratio)} of eager's time",
        )
        for row in rows(result)
        if row.ratio is not None and row.cell.mode != EAGER
    ]
    return Picture(
        "The time of a compiled call over that of an eager one, with its 95 % interval.",
        "of eager's time (below 1: faster)",
        list(dict.fromkeys(mark.series for mark in marks)),
        marks,
    )


def _how(result: TrialResult, command: str) -> list[str]:
    found = next(
        (one.environment for one in result.measurements if one.environment is not None), None
    )
    if found is None:
        return []
    number = sum(len(one.launches) for one in result.measurements)
    began = min(one.started_at for one in result.measurements)[:10]
    starts = all(one.cell.start for one in result.measurements)
    turns = "each is new processes, in which warm calls of eager and compiled code take turns"
    if starts:
        turns = "a pair is two new processes, each from its start to its first result"
    checks = [
        each.accuracy for one in result.measurements for each in one.launches if each.accuracy
    ]
    checked = bool(checks) and all(one.compared for one in checks)
    compared = " Outputs were compared with eager's." * checked
    return [
        f"PyTorch {found.torch}, Python {found.python}, {found.device_name}, "
        f"{plural(found.threads, 'thread')}, {found.kernel}; {began}.",
        f"{plural(number, 'launch')}: {turns}.{compared}",
        *(["It was interrupted: these are the launches until then."] if result.interrupted else []),
        f"Repeat it: {command}",
    ]


def failed(trial: Trial, result: TrialResult) -> bool:
    """Whether any cell has no numbers.

    A question also asks what a release or machine does not support: to say so is an answer.
    """
    accepted = (Status.OK, Status.UNSUPPORTED) if trial.question else (Status.OK,)
    return any(measurement.outcome.status not in accepted for measurement in result.measurements)
