"""The stories of docs/stories and the guides beside them as pages of the site.

A story is Markdown, which a well-kept parser renders without any HTML of its own. A comment in it
says what it is about: ``<!-- about: 2.9 2.10; resnet18; gpu -->``, releases, then workloads, then
what it concerns only: ``gpu``, ``training``, ``starts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from ..errors import SuiteError

INDEX = "stories.html"
# The documents that explain the words of the pages, and how the suite measures.
GUIDES = ("glossary", "method")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_ABOUT = re.compile(r"<!-- about: ([^;>]*)(?:;([^;>]*))?(?:;([^>]*))? -->")
_TITLE = re.compile(r"\A# (?P<title>.+)\n")
# Wide tables scroll by themselves, also with the keyboard.
_WIDE = '<div class="wide" role="region" aria-label="Table" tabindex="0">'


class Story(NamedTuple):
    """A story: its page, its title, what it is about, and its text as HTML.

    ``releases``: such as ``2.9``. ``models``: names of workloads. ``only``: what it concerns only.
    """

    file: str
    title: str
    releases: list[str]
    models: list[str]
    only: list[str]
    html: Markup


def read(folder: Path) -> list[Story]:
    """The stories of the folder in the order of its README.md; none where there is no such file.

    Raises OSError if a file cannot be read, and SuiteError for a story without a title.
    """
    index = folder / "README.md"
    if not index.is_file():
        return []
    names = re.findall(r"\]\(([\w.-]+)\.md\)", index.read_text("utf-8"))
    pages = {f"{name}.md": f"story-{name}.html" for name in names}
    pages |= {f"../{name}": page for name, page in _guides(folder.parent).items()}
    return [_story(folder / f"{name}.md", pages) for name in names]


def guides(folder: Path) -> list[Story]:
    """The guides of the folder of documents, as far as they are there. Raises as `read`."""
    pages = _guides(folder)
    return [_story(folder / name, pages) for name in pages]


def _guides(folder: Path) -> dict[str, str]:
    """The page of each guide that the folder has."""
    return {f"{name}.md": f"{name}.html" for name in GUIDES if (folder / f"{name}.md").is_file()}


def _story(path: Path, pages: Mapping[str, str]) -> Story:
    text = path.read_text("utf-8")
    title = _TITLE.match(text)
    if title is None:
        raise SuiteError(f"{path} does not begin with a title: # and a text")
    about = _ABOUT.search(text)
    fields = about.groups("") if about else ("", "", "")
    releases, models, only = (field.split() for field in fields)
    body = _COMMENT.sub("", text[title.end() :])
    return Story(pages[path.name], title["title"], releases, models, only, _html(body, pages))


def _html(text: str, pages: Mapping[str, str]) -> Markup:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        if token.children:
            token.children = _linked(token.children, pages)
        # The policy of the pages allows no style in an element.
        if aligned := token.attrs.pop("style", None):
            token.attrs["class"] = "number" if "right" in str(aligned) else ""
    html: str = parser.renderer.render(tokens, parser.options, {})
    html = html.replace("<table>", f"{_WIDE}<table>").replace("</table>", "</table></div>")
    # A block of code scrolls, too.
    return Markup(html.replace("<pre><code", '<pre tabindex="0"><code'))


def _linked(tokens: Sequence[Token], pages: Mapping[str, str]) -> list[Token]:
    """The tokens with links to pages and to other hosts; other files are not on the site.

    ``pages``: the page of each document, by the address that a link has. A picture is not there.
    """
    kept: list[Token] = []
    inside: list[bool] = []
    for token in (one for one in tokens if one.type != "image"):
        if token.type == "link_open":
            to = str(token.attrGet("href"))
            if to in pages:
                token.attrSet("href", pages[to])
            inside.append(to in pages or to.startswith("https://"))
        if token.type not in ("link_open", "link_close") or inside[-1]:
            kept.append(token)
        if token.type == "link_close":
            inside.pop()
    return kept
