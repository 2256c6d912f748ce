"""What a page is made of, before it is HTML. Every string here may be hostile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from markupsafe import Markup


class Link(NamedTuple):
    """Text that leads to a page of this site: a path below the report, with a fragment or not."""

    text: str
    to: str


class Marked(NamedTuple):
    """Text with a meaning that the style shows: a verdict. ``why`` explains it."""

    text: str
    kind: str
    to: str = ""
    why: str = ""


Value = str | Link | Marked


class Table(NamedTuple):
    """Columns named in ``numbers`` are aligned to the right; the first column heads its line."""

    caption: str
    columns: list[str]
    numbers: frozenset[str]
    lines: list[list[Value]]


class Figure(NamedTuple):
    """A drawing, and what it shows in words."""

    svg: Markup
    caption: str


class Folded(NamedTuple):
    """A long text, and the line that opens it."""

    summary: str
    text: str


@dataclass
class Section:
    """A part of a page; ``id`` is what links to it end in."""

    heading: str
    id: str
    text: list[str] = field(default_factory=list)
    figure: Figure | None = None
    tables: list[Table] = field(default_factory=list)
    code: str = ""
    folded: Folded | None = None


class Option(NamedTuple):
    """One of the pages a choice leads to."""

    text: str
    to: str
    current: bool


class Choice(NamedTuple):
    """Pages that differ from this one in one respect."""

    label: str
    options: list[Option]


@dataclass
class Page:
    """One page: the answer first, then pictures, then tables, then the data to take away.

    ``path`` is below the report, ``kind`` the entry of the navigation it belongs to. ``data`` is a
    list of flat objects, offered as JSON and CSV.
    """

    path: str
    kind: str
    title: str
    answer: list[str]
    choices: list[Choice] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)
