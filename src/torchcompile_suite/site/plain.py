"""Tables without a script: for readers and search engines that run none.

They are made of the same documents that the scripts draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from ..analysis.payoff import Payoff
from ..analysis.statistics import Interval
from ..presentation import wording
from ..results.records import Problem

INDEX = "index.html"
CELL = "cell.html"
KINDS = {
    Payoff.GAIN.value: "gain",
    Payoff.LOSS.value: "loss",
    Payoff.NONE.value: "none",
    Payoff.UNKNOWN.value: "unknown",
    "better": "gain",
    "worse": "loss",
    "confirmed": "gain",
    "contradicted": "loss",
}


class Value(NamedTuple):
    """A field of a table: its text, the address it links to, and what it means."""

    text: str
    to: str = ""
    kind: str = ""
    why: str = ""


class Table(NamedTuple):
    """Columns in ``numbers`` are aligned to the right. The first column names the line."""

    caption: str
    columns: list[str]
    numbers: frozenset[str]
    lines: list[list[Value]]


@dataclass
class Section:
    """A heading, sentences and tables."""

    heading: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def address(page: str, **state: str) -> str:
    """A page in a state: what is chosen stands behind the #, as the scripts read it."""
    return f"{page}#{urlencode(state, quote_via=quote, errors='replace')}"


def rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table of a document, as objects."""
    return [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]


def interval(row: Mapping[str, Any], name: str) -> Interval | None:
    """An interval of a row; None if it has none."""
    if row[name] is None:
        return None
    bounds = (row[f"{name}_low"], row[f"{name}_high"])
    return Interval(row[name], *(math.nan if bound is None else bound for bound in bounds))


def of_machine(
    entry: Mapping[str, Any], plain: Mapping[str, Any], labels: Mapping[str, str], groups: int
) -> list[Section]:
    """What the newest point of a machine shows: at most that many groups of cells.

    ``entry``: the machine in the manifest. ``labels``: the names of the points.
    """
    name, point = entry["name"], entry["points"][-1]
    found = plain["overview"]
    sections = [_group(name, point, group) for group in found["groups"][:groups]]
    for question, document in list(plain["means"].items())[:groups]:
        sections += _means(question, document, labels)
    if found["changes"]:
        sections.append(_changes(name, point, found["changes"], labels))
    if found["cost"]:
        sections.append(_cost(name, point, found["cost"]))
    return sections


def _group(machine: str, point: str, group: Mapping[str, Any]) -> Section:
    models: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows(group):
        models.setdefault(row["label"], {})[row["mode"]] = row
    modes = [mode["mode"] for mode in group["modes"]]
    lines = []
    for label, by_mode in models.items():
        first = next(iter(by_mode.values()))
        line = [_cell(machine, point, first["cell"], label), Value(_milliseconds(first["eager_s"]))]
        line += [_paying(by_mode.get(mode)) for mode in modes]
        lines.append(line)
    caption = "The time ratio of each model in each mode, with its 95 % interval."
    if len(models) < group["models"]:
        caption += (
            f" These are {len(models)} of {group['models']} models: those with the largest gain "
            "and those with the smallest."
        )
    return Section(
        f"Does it pay? {group['question']}, batch size {group['batch']}",
        [group["headline"]],
        [Table(caption, ["model", "baseline ms", *modes], frozenset(["baseline ms"]), lines)],
    )


def _cell(machine: str, point: str, cell: str, text: str = "") -> Value:
    return Value(text or cell, address(CELL, machine=machine, at=point, cell=cell))


def _paying(row: Mapping[str, Any] | None) -> Value:
    if row is None:
        return Value("")
    if row["outcome"] != "ok":
        return Value(row["outcome"], "", "gap", row["reason"])
    fastest = ", fastest" if row["fastest"] else ""
    text = f"{wording.ratio(interval(row, 'ratio'))} {row['verdict']}{fastest}"
    return Value(text, "", KINDS.get(row["verdict"], ""))


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


def _means(
    question: str, document: Mapping[str, Any], labels: Mapping[str, str]
) -> Iterable[Section]:
    for batch, modes in document["batches"].items():
        for mode, means in modes.items():
            lines = [
                [
                    Value(labels[row["point"]]),
                    *(
                        Value(wording.ratio(interval(row, series)))
                        for series in ("eager", "compiled", "ratio")
                    ),
                ]
                for row in rows(means)
            ]
            columns = ["eager", "compiled", "ratio"]
            caption = "Geometric means; times are relative to the first line."
            yield Section(
                f"Since when? {question}, batch size {batch}, mode {mode}",
                [means["sentence"]],
                [Table(caption, ["", *columns], frozenset(columns), lines)],
            )
        return  # the other batch sizes need a script


def _changes(
    machine: str, point: str, document: Mapping[str, Any], labels: Mapping[str, str]
) -> Section:
    lines = [
        [
            _cell(machine, point, row["cell"]),
            Value(row["figure"]),
            Value(wording.ratio(interval(row, "factor"))),
            Value(row["verdict"], "", KINDS.get(row["verdict"], "")),
        ]
        for row in rows(document)
    ]
    heading = f"What changed from {labels[document['before']]} to {labels[point]}?"
    if not lines:
        return Section(heading, [document["sentence"] or "No cell was measured with both."])
    table = Table(
        "The largest changes beyond noise.",
        ["cell", "figure", "after/before", "difference"],
        frozenset(["after/before"]),
        lines,
    )
    return Section(heading, [document["sentence"]], [table])


def _cost(machine: str, point: str, document: Mapping[str, Any]) -> Section:
    columns = ["cold s", "warm s", "pays after"]
    lines = [
        [
            _cell(machine, point, row["cell"]),
            Value(wording.seconds(row["cold_compile_s"])),
            Value(wording.seconds(row["warm_compile_s"])),
            Value(_calls(row)),
        ]
        for row in rows(document)
    ]
    table = Table("The longest compiles.", ["cell", *columns], frozenset(columns), lines)
    return Section("What does compiling cost?", [document["sentence"]], [table])


def _calls(row: Mapping[str, Any]) -> str:
    if row["break_even_state"] != "calls" or row["break_even_calls"] is None:
        return str(row["break_even_state"])
    return f"{row['break_even_calls']:,.0f} calls"


def trust(plain: Mapping[str, Any], labels: Mapping[str, str]) -> Section:
    """Noise, coverage and failures of a machine."""
    document = plain["trust"]
    return Section(
        "Can I trust it?",
        document["text"],
        [
            _table("Recorded at the first run on this machine.", document["facts"], labels),
            _table("The core cells by outcome.", document["coverage"], labels),
            _table("The cells without numbers.", document["failures"], labels),
        ],
    )


def claims(plain: Mapping[str, Any]) -> Section:
    """The claims of documents, judged by the newest point of a machine."""
    document = plain["claims"]
    lines = [
        [
            Value(row["id"]),
            Value(row["says"]),
            Value(row["verdict"], "", KINDS.get(row["verdict"], "gap")),
            Value(row["reason"]),
        ]
        for row in rows(document)
    ]
    columns = ["claim", "the document says", "verdict", "our results"]
    table = Table("The claims and their verdicts.", columns, frozenset(), lines)
    return Section("Are the claims true here?", [document["sentence"]], [table])


def answers(plain: Mapping[str, Any]) -> list[Section]:
    """The questions of which a machine has a cell, with their answers."""
    return [
        Section(one["title"], [one["sentence"]], [_sheet("The cells of the answer.", one)])
        for one in plain["answers"]["questions"]
        if one["rows"]
    ]


def generated(code: Mapping[str, Any], labels: Mapping[str, str]) -> list[Section]:
    """What was generated for targets: the answer, and which point changed what."""
    return [
        Section(
            f"Generated for {key.partition('/')[2]}: {group['phase']}, mode {group['mode']}",
            [group["sentence"]],
            [_table("How many cells changed, by point and count.", group["by_point"], labels)],
        )
        for key, document in code.items()
        for group in document.get("groups", ())
    ]


def _sheet(caption: str, document: Mapping[str, Any]) -> Table:
    lines = [[Value(text) for text in line] for line in document["rows"]]
    return Table(caption, document["columns"], frozenset(document["numbers"]), lines)


def left_out(problems: Sequence[Problem]) -> list[Section]:
    """What is not shown, with the reasons; nothing without problems."""
    if not problems:
        return []
    lines = [[Value(problem.where), Value(problem.reason)] for problem in problems]
    table = Table(
        "Result files, lines and measurements that are not shown.",
        ["where", "reason"],
        frozenset(),
        lines,
    )
    return [Section("Left out", [], [table])]


def _table(caption: str, document: Mapping[str, Any], labels: Mapping[str, str]) -> Table:
    """A table of a document as it is; points by their names."""
    lines = [
        [
            Value(labels.get(text, text) if column == "point" else text)
            for column, text in zip(
                document["columns"], ("" if one is None else str(one) for one in row), strict=True
            )
        ]
        for row in document["rows"]
    ]
    columns = [column.replace("_", " ") for column in document["columns"]]
    return Table(caption, columns, frozenset(), lines)
