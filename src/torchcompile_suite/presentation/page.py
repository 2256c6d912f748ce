"""One page in one file, to hand to a colleague: sentences, a picture and tables, without a network.

The picture is drawn by the scripts of the site. A policy lets the page run no other script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import msgspec
from msgspec import Struct

from . import terminal
from .sheets import Sheet
from .wording import printable

_ASSETS = Path(__file__).parents[1] / "site" / "assets"
_SCRIPTS = (_ASSETS / "page.js", _ASSETS / "draw.js", Path(__file__).with_name("told.js"))


class Mark(Struct):
    """A ratio in the picture, with its interval where there is one. ``words``: read aloud."""

    label: str
    series: str
    value: float
    low: float | None
    high: float | None
    words: str


class Picture(Struct):
    """Ratios around 1, a line for each label, a shape for each of the ``series``."""

    caption: str
    axis: str
    series: list[str]
    marks: list[Mark]


class Part(Struct):
    """A heading, sentences and tables."""

    heading: str
    texts: Sequence[str] = ()
    sheets: Sequence[Sheet] = ()


def page(title: str, answer: Sequence[str], picture: Picture, parts: Iterable[Part]) -> bytes:
    """The page. No text is read as markup. Without scripts all but the picture is there."""
    scripts = [file.read_text("utf-8") for file in _SCRIPTS]
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    # A "<" in the data could end the element.
    data = msgspec.json.encode(picture).decode().replace("<", "\\u003c")
    body = [
        f"<h1>{_text(title)}</h1>",
        *(f'<p class="answer">{_text(one)}</p>' for one in answer),
        '<div id="picture"></div>' if picture.marks else "",
        *(
            f"<section><h2>{_text(part.heading)}</h2>"
            f"{terminal.html(part.texts, part.sheets)}</section>"
            for part in parts
            if part.texts or any(sheet.lines for sheet in part.sheets)
        ),
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{_text(title)}</title>",
            f"<style>{(_ASSETS / 'site.css').read_text('utf-8')}</style>\n</head>\n<body>\n<main>",
            *filter(None, body),
            f'</main>\n<script type="application/json" id="told">{data}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    ).encode()


def _text(text: str) -> str:
    return escape(printable(text))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
