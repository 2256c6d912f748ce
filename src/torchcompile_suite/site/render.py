"""The pages as HTML, by Jinja2 with every string escaped, with tables for readers without scripts.

The tables are made of the same documents that the scripts draw, for search engines, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from packaging.version import Version

from ..analysis.summary import version_key
from ..releases import catalogue, ledger
from ..results.parsing import Problem
from . import release_pages, stories
from .axis import Axis, Releases
from .release_pages import ReleasePage
from .sections import Section
from .shards import Shards
from .stories import Story
from .tables import Tables, generated, left_out

# Only files that are published with the page. A page asks no other host for anything.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)
# Groups of cells that the landing page has without a script; the page of tables has all.
_FIRST = 1
# Stories that it names.
_STORIES = 2

_environment = Environment(
    loader=PackageLoader("torchcompile_suite.site"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


class Room(str, Enum):
    """A part of the site, with its name in the navigation. It opens with its first page."""

    OVERVIEW = "Overview"
    MODELS = "Models"
    RELEASES = "Releases"
    QUESTIONS = "Questions"
    TRUST = "How we know"


class Kind(NamedTuple):
    """A kind of pages: its file, its name in its room, its question, what it draws, its room."""

    file: str
    name: str
    title: str
    script: str = ""
    room: Room = Room.OVERVIEW


QUESTION = "Does torch.compile pay, for which models, and since when?"
INDEX = Kind("index.html", "Overview", QUESTION, "landing")
ANSWERS = Kind("answers.html", "What people ask", "What people ask", "answers", Room.QUESTIONS)
CELL = Kind("cell.html", "One model", "One model, since when?", "cell", Room.MODELS)
GENERATED = Kind(
    *("generated.html", "GPU code", "What is generated for a GPU that is not here?", "generated"),
    Room.QUESTIONS,
)
KINDS = (
    INDEX,
    Kind("models.html", "All models", "All models: does it pay?", "models", Room.MODELS),
    CELL,
    Kind("compare.html", "Compare two", "What changed?", "compare", Room.RELEASES),
    ANSWERS,
    Kind("cost.html", "Cost", "What does compiling cost?", "cost", Room.QUESTIONS),
    Kind("compiler.html", "Compiler", "What does the compiler make?", "compiler", Room.QUESTIONS),
    GENERATED,
    Kind("trust.html", "Trust", "Can I trust it?", "trust", Room.TRUST),
    Kind("claims.html", "Claims", "Are the claims true here?", "claims", Room.TRUST),
)
TABLES = Kind("tables.html", "Tables", "The newest results as plain tables", room=Room.TRUST)
RELEASES = Kind("releases.html", "All releases", "Releases", room=Room.RELEASES)
STORIES = Kind(stories.INDEX, "Stories", "What releases changed, and why", room=Room.RELEASES)


class Content(NamedTuple):
    """What the pages show.

    - ``machines``: those with results, the first one opens the site. ``points``: all, in words.
    - ``problems``: what is not shown.
    - ``code``: the documents of generated code, which is of no machine.
    - ``stories``: what people wrote about releases. ``guides``: words, and how it is measured.
    """

    axis: Axis
    machines: Sequence[Shards]
    points: Mapping[str, Mapping[str, str]]
    problems: Sequence[Problem]
    code: Mapping[str, Mapping[str, Any]]
    stories: Sequence[Story]
    guides: Sequence[Story]


def pages(content: Content) -> dict[str, str]:
    """Every page by its file."""
    machines = content.machines
    of_releases = isinstance(content.axis, Releases)
    told = [STORIES] if content.stories else []
    kinds = [*([RELEASES] if of_releases else []), *told, *KINDS, TABLES]
    labels = {point: facts["label"] for point, facts in content.points.items()}
    first = [Section("", ["Nothing was measured yet. Start with: nox -s bench"])]
    if machines:
        first = Tables(machines[0], labels).newest(_FIRST)
    changed = release_pages.changed(machines, content.code, content.stories, labels)
    made = {}
    written = partial(_page, kinds=kinds, guides=content.guides)
    for kind in KINDS:
        made[kind.file] = written("shell.html", kind, sections=[], machines=[], start=None)
    entries = [one.entry for one in machines]
    start = _start(content, changed)
    made[INDEX.file] = written("shell.html", INDEX, sections=first, machines=entries, start=start)
    parts = [(one.entry, Tables(one, labels).everything()) for one in machines]
    of_none = (None, [*generated(content.code, labels), *left_out(content.problems)])
    made[TABLES.file] = written("tables.html", TABLES, parts_of_page=[*parts, of_none])
    if of_releases:
        commits = ledger.commit_of()
        of_files = {page.file: page for page in changed}
        releases = [
            release_pages.listed(
                release, commits[release.version], machines, content.stories, of_files
            )
            for release in reversed(catalogue.everything())
        ]
        made[RELEASES.file] = written("releases.html", RELEASES, releases=releases)
        for page in changed:
            kind = RELEASES._replace(file=page.file, title=page.title, script="release")
            made[page.file] = written("release.html", kind, page=page)
    if content.stories:
        made[STORIES.file] = written("stories.html", STORIES, stories=content.stories)
    for story in content.stories:
        kind = STORIES._replace(file=story.file, title=story.title)
        made[story.file] = written("story.html", kind, story=story)
    for guide in content.guides:
        kind = TABLES._replace(file=guide.file, title=guide.title)
        made[guide.file] = written("story.html", kind, story=guide)
    return made


def _start(content: Content, changed: Sequence[ReleasePage]) -> dict[str, Any] | None:
    """What the landing page leads to, of releases: the newest one's page, the newest stories."""
    if not content.machines or not isinstance(content.axis, Releases):
        return None
    newest = content.machines[0].entry["points"][-1]
    told = sorted(content.stories, key=_newest)
    return {
        "releases": [page for page in changed if page.after == newest],
        "stories": told[: -_STORIES - 1 : -1],
    }


def _newest(story: Story) -> Version:
    return max(map(version_key, story.releases), default=version_key(""))


def _page(template: str, kind: Kind, kinds: Sequence[Kind], **content: Any) -> str:
    """A page of that template. ``kinds``: those in the navigation."""
    rooms = {room: [one for one in kinds if one.room is room] for room in Room}
    return _environment.get_template(template).render(
        kind=kind, rooms=rooms, policy=POLICY, **content
    )
