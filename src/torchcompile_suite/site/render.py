"""A page as files: HTML by Jinja2 with every string escaped, and its data as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import posixpath
from collections.abc import Sequence
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from . import paths
from .page import Link, Marked, Page, Value

# Only files that are published with the page, and no script.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
STYLE = "site.css"

_environment = Environment(
    loader=PackageLoader("torchcompile_suite.site"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


class Entry(NamedTuple):
    """An entry of the navigation: a kind of pages, and the page it links to."""

    kind: str
    title: str
    path: str


def html(page: Page, navigation: Sequence[Entry]) -> str:
    """The page as HTML. Every string is escaped; only charts are markup."""

    def to(target: str) -> str:
        return paths.relative(page.path, target)

    return _environment.get_template("page.html").render(
        page=page,
        navigation=navigation,
        policy=POLICY,
        style=to(STYLE),
        asv=to("../index.html"),
        icon=to("../swallow.ico"),
        to=to,
        parts=_parts,
        downloads=[(ending.upper(), to(data_path(page, ending))) for ending in ("csv", "json")]
        if page.data
        else [],
    )


def _parts(value: Value) -> dict[str, str]:
    """A value of a table, for the template."""
    if isinstance(value, Link):
        return {"text": value.text, "to": value.to, "kind": "", "why": ""}
    if isinstance(value, Marked):
        return value._asdict()
    return {"text": value, "to": "", "kind": "", "why": ""}


def data_path(page: Page, ending: str) -> str:
    """The path of the page's data file."""
    return f"{posixpath.splitext(page.path)[0]}.{ending}"


def as_json(page: Page) -> str:
    """The data as a list of objects, one for each line. NaN and infinity become null."""
    return "[\n" + ",\n".join(map(_object, page.data)) + "\n]\n"


def _object(line: dict[str, Any]) -> str:
    try:
        return json.dumps(line, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(line))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(page: Page) -> str:
    """The data as a table with the columns of all lines.

    A text that a spreadsheet would read as a formula gets a quote in front.
    """
    columns = list(dict.fromkeys(key for line in page.data for key in line))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for line in page.data:
        writer.writerow([_plain(line.get(key)) for key in columns])
    return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return " ".join(
            ":".join(map(repr, part)) if isinstance(part, tuple) else repr(part) for part in value
        )
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return value
