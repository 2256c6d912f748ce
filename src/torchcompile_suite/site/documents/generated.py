"""What was generated for each target, by point: counts, the same on all machines, and no times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from ... import targets
from ...analysis import generated
from ...analysis.generated import LAUNCHES, WITH_CUDA_GRAPHS, Row, Step
from ...modes import place
from ...presentation import answers
from ...presentation.wording import listed, plural
from ...results.records import Record
from ..axis import Axis
from ..cells import grouped
from ..packs import sheet, table

# The counts whose changes are counted by point.
_COUNTED = (LAUNCHES, WITH_CUDA_GRAPHS, "Triton kernels", "bytes after fusion")
_WORDS = ("fewer", "more")
TARGET_COLUMNS = ["target", "device", "cells", "without_code"]
COLUMNS = ["cell", "workload", "batch_size", "point", "before", "outcome", "reason"]
CHANGE_COLUMNS = ["cell", "workload", "before", "point", "count", "old", "new", "difference"]
POINT_COLUMNS = [
    *("point", "cells", "without_code", "compared", "changed"),
    *("with_an_older", "changed_since_older"),
]


def documents(records: Iterable[Record], axis: Axis) -> dict[str, dict[str, Any]]:
    """The documents by key: ``targets``, one for each target that has cells, and ``graph_breaks``,
    beside PyTorch's own tables.

    ``records`` are those of cells with a target, of all machines.
    """
    of_points = [record._replace(release=axis.point(record)) for record in records]
    kept = [record for record in of_points if record.release]
    rows = generated.rows(kept)
    by_target = grouped(rows, lambda row: row.cell.target)
    return {
        "targets": table(TARGET_COLUMNS, _targets(by_target)),
        **{f"target/{name}": _target(name, mine, axis) for name, mine in by_target.items()},
        "graph_breaks": _graph_breaks(kept, axis),
    }


def _graph_breaks(records: Sequence[Record], axis: Axis) -> dict[str, Any]:
    order = axis.order({record.release for record in records})
    told = answers.newest(answers.get("graph_breaks"), "", records, order)
    return {
        "title": told.asked.title,
        "sentence": told.answer.sentence,
        **sheet(told.answer.sheet),
    }


def points(made: dict[str, dict[str, Any]]) -> list[str]:
    """The points that any of the documents has."""
    return list(dict.fromkeys(point for one in made.values() for point in one.get("points", ())))


def _targets(by_target: dict[str, list[Row]]) -> list[list[Any]]:
    """All targets: those of the suite in their order, and then those that only results name."""
    known = targets.read()
    return [
        [
            name,
            known[name].device if name in known else "",
            len({row.cell for row in by_target.get(name, [])}),
            len({row.cell for row in by_target.get(name, []) if row.generated is None}),
        ]
        for name in dict.fromkeys([*known, *by_target])
    ]


def _target(name: str, rows: Sequence[Row], axis: Axis) -> dict[str, Any]:
    order = axis.order({row.release for row in rows})
    groups = grouped(
        generated.steps(rows, order),
        # Inference before training, and the modes in their order.
        lambda step: (step.row.cell.phase, place(step.row.cell.mode), step.row.cell.mode),
    )
    made = [_group(name, groups[group], axis, order) for group in sorted(groups)]
    return {"points": order, "groups": made}


def _group(target: str, steps: Sequence[Step], axis: Axis, order: Sequence[str]) -> dict[str, Any]:
    """The cells of a phase and a mode."""
    cell = steps[0].row.cell
    counts = [name for name in generated.COUNTS if any(name in one.row.counts for one in steps)]
    changes = [name for name in _COUNTED if name in counts]
    more = [f"{name}: {word}" for name in changes for word in _WORDS]
    return {
        "phase": cell.phase,
        "mode": cell.mode,
        "sentence": _sentence(target, steps, axis, order),
        "counts": counts,
        **table([*COLUMNS, *counts], (_line(step, counts) for step in steps)),
        "changes": table(CHANGE_COLUMNS, (line for step in steps for line in _changes(step))),
        "by_point": table(
            [*POINT_COLUMNS, *more],
            (_by_point(point, order, steps, changes) for point in order),
        ),
    }


def _line(step: Step, counts: Sequence[str]) -> list[Any]:
    row = step.row
    return [
        *(_cell(row), row.cell.workload, row.cell.batch_size, row.release, step.before),
        *(row.outcome.status.value, row.outcome.reason),
        *(row.counts.get(name) for name in counts),
    ]


def _cell(row: Row) -> str:
    dtype = [row.cell.dtype] * (row.cell.dtype != "float32")
    return ", ".join([row.cell.workload, f"batch {row.cell.batch_size}", *dtype])


def _changes(step: Step) -> list[list[Any]]:
    row = step.row
    return [
        [
            *(_cell(row), row.cell.workload, step.before, row.release, one.name),
            *(one.before, one.after, difference(one)),
        ]
        for one in step.differences
    ]


def difference(of: generated.Difference) -> str:
    """Whether the count became ``fewer`` or ``more``; ``new`` or ``gone`` if one side has none."""
    if of.before is None:
        return "new"
    if of.after is None:
        return "gone"
    return "fewer" if of.after < of.before else "more"


def _by_point(
    point: str, order: Sequence[str], steps: Sequence[Step], counts: Sequence[str]
) -> list[Any]:
    mine = [step for step in steps if step.row.release == point]
    compared = [step for step in mine if _is_next(step, order)]
    older = [step for step in mine if step.before and not _is_next(step, order)]
    found = [(one.name, difference(one)) for step in compared for one in step.differences]
    return [
        *(point, len(mine), sum(step.row.generated is None for step in mine), len(compared)),
        *(_changed(compared), len(older), _changed(older)),
        *(found.count((name, word)) for name in counts for word in _WORDS),
    ]


def _is_next(step: Step, order: Sequence[str]) -> bool:
    """Whether it is compared with the point directly before. Other changes may be older."""
    return (step.before, step.row.release) in pairwise(order)


def _changed(steps: Iterable[Step]) -> int:
    return sum(bool(step.differences) for step in steps)


def _sentence(target: str, steps: Sequence[Step], axis: Axis, order: Sequence[str]) -> str:
    """What the newest point generates, and what the points have changed."""
    cell = steps[0].row.cell
    # Of the target's points, those with this phase and mode.
    mine = [point for point in order if any(step.row.release == point for step in steps)]
    last = axis.facts(mine[-1]).label
    newest = [step.row for step in steps if step.row.release == mine[-1]]
    made = [row for row in newest if row.generated is not None]
    sentences = [
        f"{target}, {cell.phase}, mode {cell.mode}: there is code of {len(made)} of "
        f"{plural(len(newest), 'cell')} with {last}."
    ]
    compared = [step for step in steps if step.before]
    if compared:
        name = generated.count_of_launches(step.row for step in steps)
        found = [
            (step, difference(one))
            for step in compared
            for one in step.differences
            if one.name == name
        ]
        words = [word for _, word in found]
        changed = Counter(step.row.release for step, _ in found if _is_next(step, order))
        most = max(mine, key=lambda point: changed[point])
        title = "launches" if name == LAUNCHES else "launches with CUDA graphs"
        times = [f"{word} {_times(number)}" for word in _WORDS if (number := words.count(word))]
        became = f"became {listed(times)}" if times else "did not change"
        sentences.append(f"In {plural(len(mine), axis.noun)}, the {title} of a cell {became}.")
        if changed[most]:
            of = sum(one.row.release == most and _is_next(one, order) for one in compared)
            sentences.append(
                f"{axis.facts(most).label} changed most: {changed[most]} of {plural(of, 'cell')} "
                f"got another number of {title}."
            )
    return " ".join(sentences)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
