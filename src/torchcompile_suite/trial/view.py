"""A trial's answer for the terminal and for programs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..analysis import advice, summary
from ..analysis.advice import Advice
from ..analysis.break_even import break_even
from ..analysis.summary import Row
from ..cell import Measurement
from ..modes import EAGER, MODES
from ..presentation.sheets import CELL, Sheet, cell_columns
from ..presentation.wording import ratio, seconds
from ..results.records import Record
from .plan import Trial
from .run import Answer


def rows(answer: Answer) -> list[Row]:
    """The measurements as rows, fastest modes and all."""
    release = answer.outline.torch.partition("+")[0]
    return summary.rows(
        (Record("", "", "", measurement, release) for measurement in answer.measurements), MODES
    )


def table(answer: Answer) -> Sheet:
    """One line a cell, after one for eager. The model is the headline's, so it has no column."""
    figures = [
        *("ms a call [95 %]", "of eager's time", "cold s", "warm s", "MiB", "breaks"),
        *("pays after", "time to pay"),
    ]
    seen = {each.cell: each for each in answer.measurements}
    lines = []
    for row in rows(answer):
        measurement = seen[row.cell]
        if row.cell.mode != EAGER and row.eager_s is not None:
            size = str(row.cell.batch_size)
            lines.append([size, EAGER, f"{row.eager_s.scaled(1e3):.3g}", *[""] * 7])
        line = cell_columns(row.cell)[1:]
        if row.outcome.ok:
            line += _figures(row, measurement)
        else:
            line += [row.outcome.status.value, *[""] * 7]
        lines.append(line)
    once = list(dict.fromkeys(map(tuple, lines)))
    return Sheet(
        [*CELL[1:], *figures], frozenset(("batch", *figures)), [list(line) for line in once]
    )


def _figures(row: Row, measurement: Measurement) -> list[str]:
    compiled = measurement.compiled
    memory = row.peak_memory_bytes
    paid = break_even(row)
    return [
        "-" if row.latency_s is None else f"{row.latency_s.scaled(1e3):.3g}",
        ratio(row.ratio),
        seconds(row.cold_compile_s),
        seconds(row.warm_compile_s),
        "-" if not memory else f"{memory / 2**20:,.0f}",
        "-" if compiled is None else str(len(compiled.graph_breaks)),
        str(paid),
        paid.duration,
    ]


def sentences(answer: Answer) -> list[str]:
    """What to do, one sentence for each way of calling the model."""
    again = "go on with --resume and a longer --budget."
    found = rows(answer)
    ways: dict[tuple[int, str, str], list[Row]] = {}
    for row in found:
        way = row.cell.batch_size, row.cell.shapes, row.cell.allocator
        ways.setdefault(way, []).append(row)
    said = []
    for way, mine in ways.items():
        sentence = advice.sentence(mine, again)
        if len(ways) > 1:
            size, shapes, allocator = way
            names = [f"batch {size}"]
            names += [shapes] * (shapes != "static") + [allocator] * (allocator != "system")
            sentence = f"{', '.join(names)}: {sentence}"
        said.append(sentence)
    return said


def failures(answer: Answer) -> list[str]:
    """Why cells failed, where the sentences do not tell."""
    said = "\n".join(sentences(answer))
    return [
        f"Mode {row.cell.mode} at batch {row.cell.batch_size} failed: "
        f"{row.outcome.status.value}: {row.outcome.reason}"
        for row in rows(answer)
        if not row.outcome.ok and row.outcome.reason not in said
    ]


def advices(trial: Trial, answer: Answer) -> list[Advice]:
    """What to mend."""
    return advice.advice(
        answer.measurements,
        # timm's models come so, and who names one has no code to mend.
        came_training=answer.outline.training
        and trial.target is not None
        and trial.target.kind != "timm",
        varying=trial.dynamic,
    )


def as_json(trial: Trial, answer: Answer) -> bytes:
    """All of it for programs: one object; intervals are [value, low, high], unknown ones null."""
    content = {
        "workload": trial.workload,
        "outline": answer.outline,
        "interrupted": answer.interrupted,
        "sentences": sentences(answer),
        "advice": [each._asdict() for each in advices(trial, answer)],
        "rows": [row._asdict() for row in rows(answer)],
        "measurements": answer.measurements,
    }
    return msgspec.json.format(msgspec.json.encode(content))


def failed(measurements: Sequence[Measurement]) -> bool:
    """Whether any cell ended otherwise than with numbers."""
    return any(not each.outcome.ok for each in measurements)
