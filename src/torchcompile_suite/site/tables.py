"""The newest results as plain tables, for readers without scripts and for search engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from ..analysis.history import SERIES
from ..analysis.payoff import BreakEven, State
from ..presentation import wording
from ..results.parsing import Problem
from .cells import grouped
from .sections import (
    STYLES,
    Line,
    Row,
    Section,
    Value,
    address,
    as_it_is,
    judged,
    ratio,
    rows,
    table,
)
from .shards import Shards


def _paying(row: Row | None) -> Value | str:
    """Whether a mode of a model pays, or how its cell ended."""
    if row is None:
        return ""
    if row["outcome"] != "ok":
        return Value(row["outcome"], "", "gap", row["reason"])
    marks = ", fastest" * row["fastest"] + ", slowed" * bool(row["slowdown"])
    text = f"{ratio(row, 'ratio')} {row['verdict']}{marks}"
    return Value(text, "", STYLES.get(row["verdict"], ""))


class Tables:
    """The tables of what the newest point of a machine shows. ``labels``: the names of points."""

    def __init__(self, machine: Shards, labels: Mapping[str, str]) -> None:
        """See the class."""
        self._name: str = machine.entry["name"]
        self._point: str = machine.entry["points"][-1]
        self._plain = machine.plain
        self._labels = labels

    def everything(self) -> list[Section]:
        """All sections of the machine."""
        every = len(self._plain["overview"]["groups"])
        return [*self.newest(every), *self._answers(), self._claims(), self._trust()]

    def newest(self, groups: int) -> list[Section]:
        """What the overview shows: at most that many groups of cells."""
        found = self._plain["overview"]
        sections = [self._group(group) for group in found["groups"][:groups]]
        for question, document in list(self._plain["means"].items())[:groups]:
            sections += self._means(question, document)
        if found["changes"]:
            sections.append(self._changes(found["changes"]))
        if found["cost"]:
            sections.append(self._cost(found["cost"]))
        return sections

    def _cell(self, row: Row, text: str = "cell") -> Value:
        state = {"machine": self._name, "at": self._point, "cell": row["cell"]}
        return Value(row[text], address("cell.html", **state))

    def _group(self, group: Row) -> Section:
        models = grouped(rows(group), itemgetter("label")).values()
        modes = list(dict.fromkeys(row["mode"] for row in rows(group)))
        baseline = f"{group['baseline']} time"
        lines: list[Line] = []
        for model in models:
            by_mode = {row["mode"]: row for row in model}
            first, *_ = by_mode.values()
            line = self._cell(first, "label"), first["baseline_time"]
            lines.append([*line, *(_paying(by_mode.get(mode)) for mode in modes)])
        caption = "The time ratio of each model in each mode, with its 95 % interval."
        if len(models) < group["models"]:
            caption += (
                f" These are {len(models)} of {group['models']} models: the largest gains and the "
                "smallest."
            )
        return Section(
            f"Does it pay? {group['question']}, batch size {group['batch']}",
            [group["headline"]],
            [table(caption, ["model", baseline, *modes], lines, [baseline])],
        )

    def _means(self, question: str, document: Row) -> Iterable[Section]:
        """Those of the first batch size: the other ones need a script."""
        caption = "Geometric means; times are relative to the first line."
        for batch, modes in list(document["batches"].items())[:1]:
            for mode, means in modes.items():
                lines = (
                    [self._labels[row["point"]], *(ratio(row, series) for series in SERIES)]
                    for row in rows(means)
                )
                yield Section(
                    f"Since when? {question}, batch size {batch}, mode {mode}",
                    [means["sentence"]],
                    [table(caption, ["", *SERIES], lines, SERIES)],
                )

    def _changes(self, document: Row) -> Section:
        before, after = self._labels[document["before"]], self._labels[self._point]
        lines: Iterable[Line] = (
            [self._cell(row), row["figure"], ratio(row, "factor"), judged(row["verdict"])]
            for row in rows(document)
        )
        columns = ["cell", "figure", "after/before", "difference"]
        caption = "The largest single changes beyond noise."
        return Section(
            f"What changed from {before} to {after}?",
            [document["sentence"] or "No cell has numbers of both that can be compared."],
            [table(caption, columns, lines, ["after/before"])],
        )

    def _cost(self, document: Row) -> Section:
        lines: list[Line] = [
            [
                self._cell(row),
                *(wording.seconds(row[name]) for name in ("cold_compile_s", "warm_compile_s")),
                str(
                    BreakEven(
                        State(row["break_even_state"]),
                        least=row["break_even_least"],
                        most=row["break_even_most"],
                    )
                ),
            ]
            for row in rows(document)
        ]
        columns = ["cell", "cold s", "warm s", "pays after"]
        made = table("The longest compiles.", columns, lines, columns[1:])
        return Section("What does compiling cost?", [document["sentence"]], [made])

    def _trust(self) -> Section:
        document = self._plain["trust"]
        captions = {
            "facts": "Recorded at the first run on this machine.",
            "coverage": "The core cells by outcome.",
            "failures": "The cells without numbers.",
        }
        tables = [as_it_is(text, document[key], self._labels) for key, text in captions.items()]
        return Section("Can I trust it?", document["text"], tables)

    def _claims(self) -> Section:
        document = self._plain["claims"]
        lines: Iterable[Line] = (
            [row["id"], row["says"], judged(row["verdict"], "gap"), row["reason"]]
            for row in rows(document)
        )
        columns = ["claim", "the document says", "verdict", "our results"]
        made = table("The claims and their verdicts.", columns, lines)
        return Section("Are the claims true here?", [document["sentence"]], [made])

    def _answers(self) -> Iterable[Section]:
        """The questions of which the machine has a cell, with their answers."""
        for one in self._plain["answers"]["questions"]:
            if one["rows"]:
                caption = "The cells of the answer."
                made = table(caption, one["columns"], one["rows"], one["numbers"])
                yield Section(one["title"], [one["sentence"]], [made])


def generated(code: Mapping[str, Row], labels: Mapping[str, str]) -> list[Section]:
    """What was generated for targets: the answer, and which point changed what."""
    caption = "How many cells changed, by point and count."
    return [
        Section(
            f"Generated for {key.partition('/')[2]}: {group['phase']}, mode {group['mode']}",
            [group["sentence"]],
            [as_it_is(caption, group["by_point"], labels)],
        )
        for key, document in code.items()
        for group in document.get("groups", ())
    ]


def left_out(problems: Sequence[Problem]) -> list[Section]:
    """What is not shown, with the reasons; nothing without problems."""
    caption = "Result files, lines and measurements that are not shown."
    made = table(caption, ["where", "reason"], problems)
    return [Section("Left out", [], [made])] if problems else []
