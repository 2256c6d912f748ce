"""The parts of a page: sections of sentences and tables, made of the documents of the data."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from ..analysis.payoff import Payoff
from ..analysis.statistics import Interval
from ..presentation import wording
from .packs import spread

# What is judged -> the name of its style.
STYLES = {
    Payoff.GAIN.value: "gain",
    Payoff.LOSS.value: "loss",
    Payoff.NONE.value: "none",
    Payoff.UNKNOWN.value: "unknown",
    "better": "gain",
    "worse": "loss",
    "confirmed": "gain",
    "contradicted": "loss",
}


def address(page: str, **state: str) -> str:
    """A page in a state: what is chosen stands behind the #, as the scripts read it."""
    return f"{page}#{urlencode(state, quote_via=quote)}"


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


def table(
    caption: str,
    columns: Sequence[str],
    lines: Iterable[Line],
    numbers: Collection[str] = (),
) -> Table:
    """A table of these lines; text may stand for a value."""
    values = [[Value(one) if isinstance(one, str) else one for one in line] for line in lines]
    return Table(caption, columns, numbers, values)


def as_it_is(caption: str, document: Row, labels: Mapping[str, str]) -> Table:
    """A table of a document; points by their names."""

    def text(name: str, value: Any) -> str:
        return labels.get(value, value) if name == "point" else "" if value is None else str(value)

    lines = ([text(*one) for one in row.items()] for row in rows(document))
    return table(caption, [name.replace("_", " ") for name in document["columns"]], lines)


def ratio(row: Row, name: str) -> str:
    """An interval of a row in words."""
    if row[name] is None:
        return wording.ratio(None)
    bounds = (row[column] for column in spread(name))
    return wording.ratio(Interval(*(math.nan if bound is None else bound for bound in bounds)))


def judged(verdict: str, otherwise: str = "") -> Value:
    """A verdict in its style; ``otherwise``: the style of one that has none."""
    return Value(verdict, "", STYLES.get(verdict, otherwise))


def sheet(caption: str, document: Row) -> Table:
    """A table of text (`packs.sheet`)."""
    return table(caption, document["columns"], document["rows"], document["numbers"])
