"""The pages as HTML, by Jinja2 with every string escaped, with tables for readers without scripts.

The tables are made of the same documents that the scripts draw, for search engines, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..analysis.history import SERIES
from ..analysis.payoff import BreakEven, Payoff, State
from ..analysis.statistics import Interval
from ..presentation import wording
from ..releases import catalogue, ledger
from ..releases.catalogue import Release
from ..results.records import COMMIT_DIGITS, Problem
from .axis import Axis, Releases, label
from .cells import grouped
from .packs import spread
from .shards import Shards

# Only files that are published with the page. A page asks no other host for anything.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)
STYLE = "site.css"
# Groups of cells that the landing page has without a script; the page of tables has all.
_FIRST = 1

_environment = Environment(
    loader=PackageLoader("torchcompile_suite.site"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


class Kind(NamedTuple):
    """A kind of pages: its file, its name in the navigation, its question, and what it draws."""

    file: str
    name: str
    title: str
    script: str = ""


QUESTION = "Does torch.compile pay, on this hardware, for this model, in this mode, since when?"
INDEX = Kind("index.html", "Overview", QUESTION, "landing")
ANSWERS = Kind("answers.html", "Questions", "What people ask", "answers")
CELL = Kind("cell.html", "Model", "One model, since when?", "cell")
GENERATED = Kind(
    "generated.html", "GPU code", "What is generated for a GPU that is not here?", "generated"
)
KINDS = (
    INDEX,
    ANSWERS,
    Kind("models.html", "Models", "All models: does it pay?", "models"),
    CELL,
    Kind("compare.html", "Compare", "What changed?", "compare"),
    Kind("cost.html", "Cost", "What does compiling cost?", "cost"),
    Kind("compiler.html", "Compiler", "What does the compiler make?", "compiler"),
    GENERATED,
    Kind("claims.html", "Claims", "Are the claims true here?", "claims"),
    Kind("trust.html", "Trust", "Can I trust it?", "trust"),
)
TABLES = Kind("tables.html", "Tables", "The newest results as plain tables")
RELEASES = Kind("releases.html", "Releases", "Releases")
# What is judged -> the name of its style.
_STYLES = {
    Payoff.GAIN.value: "gain",
    Payoff.LOSS.value: "loss",
    Payoff.NONE.value: "none",
    Payoff.UNKNOWN.value: "unknown",
    "better": "gain",
    "worse": "loss",
    "confirmed": "gain",
    "contradicted": "loss",
}


class Content(NamedTuple):
    """What the pages show.

    - ``machines``: those with results, the first one opens the site. ``points``: all, in words.
    - ``problems``: what is not shown.
    - ``code``: the documents of generated code, which is of no machine.
    """

    axis: Axis
    machines: Sequence[Shards]
    points: Mapping[str, Mapping[str, str]]
    problems: Sequence[Problem]
    code: Mapping[str, Mapping[str, Any]]


def pages(content: Content) -> dict[str, str]:
    """Every page by its file."""
    machines = content.machines
    of_releases = isinstance(content.axis, Releases)
    kinds = [*KINDS, TABLES, *([RELEASES] if of_releases else [])]
    labels = {point: facts["label"] for point, facts in content.points.items()}
    first = [Section("", ["Nothing was measured yet. Start with: nox -s bench"])]
    if machines:
        first = _Tables(machines[0], labels).newest(_FIRST)
    made = {}
    for kind in KINDS:
        shown = (first, [one.entry for one in machines]) if kind is INDEX else ([], [])
        made[kind.file] = _page("shell.html", kind, kinds, sections=shown[0], machines=shown[1])
    parts = [(one.entry, _Tables(one, labels).everything()) for one in machines]
    of_none = (None, [*_generated(content.code, labels), *_left_out(content.problems)])
    made[TABLES.file] = _page("tables.html", TABLES, kinds, parts_of_page=[*parts, of_none])
    if of_releases:
        commits = ledger.commit_of()
        releases = [
            _release(release, commits[release.version], machines)
            for release in reversed(catalogue.everything())
        ]
        made[RELEASES.file] = _page("releases.html", RELEASES, kinds, releases=releases)
    return made


def _page(template: str, kind: Kind, kinds: Sequence[Kind], **content: Any) -> str:
    """A page of that template. ``kinds``: those in the navigation."""
    return _environment.get_template(template).render(
        kind=kind, kinds=kinds, policy=POLICY, style=STYLE, **content
    )


def address(page: str, **state: str) -> str:
    """A page in a state: what is chosen stands behind the #, as the scripts read it."""
    return f"{page}#{urlencode(state, quote_via=quote)}"


# Tables

Row = Mapping[str, Any]
Line = Iterable["Value | str"]


class Value(NamedTuple):
    """A field of a table: its text, the address it links to, and what it means."""

    text: str
    to: str = ""
    kind: str = ""
    why: str = ""


class Table(NamedTuple):
    """Columns in ``numbers`` are aligned to the right. The first column names the line."""

    caption: str
    columns: Sequence[str]
    numbers: Collection[str]
    lines: list[list[Value]]


class Section(NamedTuple):
    """A heading, sentences and tables."""

    heading: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()


def rows(document: Row) -> list[dict[str, Any]]:
    """The rows of a table of a document, as objects."""
    return [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]


def _table(
    caption: str,
    columns: Sequence[str],
    lines: Iterable[Line],
    numbers: Collection[str] = (),
) -> Table:
    values = [[Value(one) if isinstance(one, str) else one for one in line] for line in lines]
    return Table(caption, columns, numbers, values)


def _as_it_is(caption: str, document: Row, labels: Mapping[str, str]) -> Table:
    """A table of a document; points by their names."""

    def text(name: str, value: Any) -> str:
        return labels.get(value, value) if name == "point" else "" if value is None else str(value)

    lines = ([text(*one) for one in row.items()] for row in rows(document))
    return _table(caption, [name.replace("_", " ") for name in document["columns"]], lines)


def _ratio(row: Row, name: str) -> str:
    """An interval of a row in words."""
    if row[name] is None:
        return wording.ratio(None)
    bounds = (row[column] for column in spread(name))
    return wording.ratio(Interval(*(math.nan if bound is None else bound for bound in bounds)))


def _judged(verdict: str, otherwise: str = "") -> Value:
    return Value(verdict, "", _STYLES.get(verdict, otherwise))


def _paying(row: Row | None) -> Value | str:
    """Whether a mode of a model pays, or how its cell ended."""
    if row is None:
        return ""
    if row["outcome"] != "ok":
        return Value(row["outcome"], "", "gap", row["reason"])
    fastest = ", fastest" if row["fastest"] else ""
    text = f"{_ratio(row, 'ratio')} {row['verdict']}{fastest}"
    return Value(text, "", _STYLES.get(row["verdict"], ""))


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


class _Tables:
    """The tables of what the newest point of a machine shows. ``labels``: the names of points."""

    def __init__(self, machine: Shards, labels: Mapping[str, str]) -> None:
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
        return Value(row[text], address(CELL.file, **state))

    def _group(self, group: Row) -> Section:
        models = grouped(rows(group), itemgetter("label")).values()
        modes = [mode["mode"] for mode in group["modes"]]
        lines: list[Line] = []
        for model in models:
            by_mode = {row["mode"]: row for row in model}
            first, *_ = by_mode.values()
            line = self._cell(first, "label"), _milliseconds(first["eager_s"])
            lines.append([*line, *(_paying(by_mode.get(mode)) for mode in modes)])
        caption = "The time ratio of each model in each mode, with its 95 % interval."
        if len(models) < group["models"]:
            caption += (
                f" These are {len(models)} of {group['models']} models: those with the largest "
                "gain and those with the smallest."
            )
        return Section(
            f"Does it pay? {group['question']}, batch size {group['batch']}",
            [group["headline"]],
            [_table(caption, ["model", "baseline ms", *modes], lines, ["baseline ms"])],
        )

    def _means(self, question: str, document: Row) -> Iterable[Section]:
        """Those of the first batch size: the other ones need a script."""
        caption = "Geometric means; times are relative to the first line."
        for batch, modes in list(document["batches"].items())[:1]:
            for mode, means in modes.items():
                lines = (
                    [self._labels[row["point"]], *(_ratio(row, series) for series in SERIES)]
                    for row in rows(means)
                )
                yield Section(
                    f"Since when? {question}, batch size {batch}, mode {mode}",
                    [means["sentence"]],
                    [_table(caption, ["", *SERIES], lines, SERIES)],
                )

    def _changes(self, document: Row) -> Section:
        before, after = self._labels[document["before"]], self._labels[self._point]
        lines: Iterable[Line] = (
            [self._cell(row), row["figure"], _ratio(row, "factor"), _judged(row["verdict"])]
            for row in rows(document)
        )
        columns = ["cell", "figure", "after/before", "difference"]
        caption = "The largest changes beyond noise."
        return Section(
            f"What changed from {before} to {after}?",
            [document["sentence"] or "No cell was measured with both."],
            [_table(caption, columns, lines, ["after/before"])],
        )

    def _cost(self, document: Row) -> Section:
        lines: list[Line] = [
            [
                self._cell(row),
                *(wording.seconds(row[name]) for name in ("cold_compile_s", "warm_compile_s")),
                str(BreakEven(State(row["break_even_state"]), row["break_even_calls"])),
            ]
            for row in rows(document)
        ]
        columns = ["cell", "cold s", "warm s", "pays after"]
        table = _table("The longest compiles.", columns, lines, columns[1:])
        return Section("What does compiling cost?", [document["sentence"]], [table])

    def _trust(self) -> Section:
        document = self._plain["trust"]
        captions = {
            "facts": "Recorded at the first run on this machine.",
            "coverage": "The core cells by outcome.",
            "failures": "The cells without numbers.",
        }
        tables = [_as_it_is(text, document[key], self._labels) for key, text in captions.items()]
        return Section("Can I trust it?", document["text"], tables)

    def _claims(self) -> Section:
        document = self._plain["claims"]
        lines: Iterable[Line] = (
            [row["id"], row["says"], _judged(row["verdict"], "gap"), row["reason"]]
            for row in rows(document)
        )
        columns = ["claim", "the document says", "verdict", "our results"]
        table = _table("The claims and their verdicts.", columns, lines)
        return Section("Are the claims true here?", [document["sentence"]], [table])

    def _answers(self) -> Iterable[Section]:
        """The questions of which the machine has a cell, with their answers."""
        for one in self._plain["answers"]["questions"]:
            if one["rows"]:
                caption = "The cells of the answer."
                table = _table(caption, one["columns"], one["rows"], one["numbers"])
                yield Section(one["title"], [one["sentence"]], [table])


def _generated(code: Mapping[str, Row], labels: Mapping[str, str]) -> list[Section]:
    """What was generated for targets: the answer, and which point changed what."""
    caption = "How many cells changed, by point and count."
    return [
        Section(
            f"Generated for {key.partition('/')[2]}: {group['phase']}, mode {group['mode']}",
            [group["sentence"]],
            [_as_it_is(caption, group["by_point"], labels)],
        )
        for key, document in code.items()
        for group in document.get("groups", ())
    ]


def _left_out(problems: Sequence[Problem]) -> list[Section]:
    """What is not shown, with the reasons; nothing without problems."""
    caption = "Result files, lines and measurements that are not shown."
    table = _table(caption, ["where", "reason"], problems)
    return [Section("Left out", [], [table])] if problems else []


# Releases


def _release(release: Release, commit: str, machines: Sequence[Shards]) -> dict[str, Any]:
    """A release on the page that ASV's commit links lead to. ``id``: digits of its commit."""
    known = [made.upstream.get(release.version, "") for made in machines]
    upstream = release.git_version or next(filter(None, known), "")
    facts = [
        ("version", release.version),
        ("uploaded", release.date.date().isoformat()),
        ("upstream tag", release.tag),
        ("upstream commit", upstream or "not recorded"),
        ("ledger commit", commit),
        ("Pythons with wheels", ", ".join(release.pythons)),
    ]
    measured = [
        (one["title"], address(INDEX.file, machine=one["name"], at=release.version))
        for one in (made.entry for made in machines)
        if release.version in one["points"]
    ]
    return {
        "id": commit[:COMMIT_DIGITS],
        "label": label(release.version),
        "facts": facts,
        "measured": measured,
        "lock": release.lock.read_text() if release.lock.is_file() else "",
    }
