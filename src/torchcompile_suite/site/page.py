"""The parts of a page, before it is HTML. Any string may be hostile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from markupsafe import Markup


class Link(NamedTuple):
    """A link to a page of this site. ``to`` is a path below the report, maybe with a fragment."""

    text: str
    to: str


class Marked(NamedTuple):
    """Text with a meaning that the style shows, such as a gain. ``why`` explains it."""

    text: str
    kind: str
    to: str = ""
    why: str = ""


Value = str | Link | Marked


class Table(NamedTuple):
    """Columns in ``numbers`` are aligned to the right. The first column is the row header."""

    caption: str
    columns: list[str]
    numbers: frozenset[str]
    lines: list[list[Value]]


class Figure(NamedTuple):
    """A chart, and its caption."""

    svg: Markup
    caption: str


class Folded(NamedTuple):
    """A long text that is folded, and the line that opens it."""

    summary: str
    text: str


@dataclass
class Section:
    """A part of a page. ``id`` is the fragment of links to it."""

    heading: str
    id: str
    text: list[str] = field(default_factory=list)
    figure: Figure | None = None
    tables: list[Table] = field(default_factory=list)
    code: str = ""
    folded: Folded | None = None


class Option(NamedTuple):
    """One of the pages of a choice."""

    text: str
    to: str
    current: bool


class Choice(NamedTuple):
    """Pages that differ from this page in one thing, such as the release."""

    label: str
    options: list[Option]


@dataclass
class Page:
    """One page: the answer, then charts, then tables, then the data to download.

    ``path`` is below the report. ``kind`` is its entry of the navigation. ``data`` is a list of
    flat objects, offered as JSON and CSV.
    """

    path: str
    kind: str
    title: str
    answer: list[str]
    choices: list[Choice] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)
