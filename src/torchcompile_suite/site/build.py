"""Writes the report: shards of data, a page for each kind of question, scripts and the style."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..analysis import summaries
from ..host import workers
from ..presentation import answers
from ..releases import catalogue, ledger
from ..releases.catalogue import Release
from ..results import records
from ..results.machines import classes, in_order
from ..results.records import Problem
from . import packs, plain, render, shards
from .axis import Axis, Releases, label
from .code import Code
from .documents import generated
from .plain import Section
from .render import ANSWERS, GENERATED, KINDS, RELEASES, TABLES
from .shards import Shards

ASSETS = Path(__file__).with_name("assets")
MANIFEST = "manifest"
# Groups of cells that the landing page has without a script; the page of tables has all.
_FIRST = 1
# A machine of 1,000 cells in 12 releases takes half a GiB of memory.
_MOST_WORKERS = 8


def build(
    results: Path, folder: Path, left_out: Sequence[Problem] = (), axis: Axis | None = None
) -> list[Problem]:
    """Write the report on ``results`` into ``folder``, which is empty or does not exist.

    ``axis``: what the results are of; else releases. Returns the problems: those of ``left_out``,
    then what this function could not read or show. Raises OSError.
    """
    axis = axis or Releases()
    (folder / packs.FOLDER).mkdir(parents=True)
    machines = []
    folders, linked = records.machine_folders(results)
    problems = [*left_out, *linked]
    generated_code = summaries.read_generated(results)
    code = Code(generated_code, axis)
    of_machine = partial(shards.of_machine, axis=axis, code=code)
    for made, of_folder in workers.each(of_machine, folders, _MOST_WORKERS):
        problems += of_folder
        if made is not None:
            _write_all(folder, made.texts)
            made.texts.clear()
            machines.append(made)
    shown = {made.entry["name"] for made in machines}
    for hardware, of_class in _classes(results, [one for one in folders if one.name in shown]):
        whole = shards.of_class(hardware, of_class, axis, code)
        if whole is not None:
            _write_all(folder, whole.texts)
            whole.texts.clear()
            machines.append(whole)
    # The site opens with the first machine, which is the one that commands take, too.
    by_name = {made.entry["name"]: made for made in machines}
    standings = {name: made.standing for name, made in by_name.items()}
    of_classes = {name for name, made in by_name.items() if "machines" in made.entry}
    machines = [by_name[name] for name in in_order(standings, first=of_classes)]
    # What ASV's files are made of was read before.
    problems = list(dict.fromkeys(problems))
    content = _Content(axis, machines, problems, generated.documents(generated_code, axis))
    _write_all(folder, _manifest(content))
    _write_all(folder, _pages(content))
    shutil.copytree(ASSETS, folder, dirs_exist_ok=True)
    return problems


def _classes(results: Path, folders: Sequence[Path]) -> Iterator[tuple[str, list[Path]]]:
    """The classes with several machines, by name, and the folders of each."""
    known = classes(results)
    found: dict[str, list[Path]] = {}
    for folder in folders:
        if folder.name in known:
            found.setdefault(known[folder.name], []).append(folder)
    return ((name, many) for name, many in sorted(found.items()) if len(many) > 1)


class _Content(NamedTuple):
    """What the pages show. ``code``: the documents of generated code, which is of no machine."""

    axis: Axis
    machines: Sequence[Shards]
    problems: Sequence[Problem]
    code: dict[str, dict[str, Any]]

    @property
    def points(self) -> dict[str, dict[str, str]]:
        """All points in words."""
        known = {point: facts for made in self.machines for point, facts in made.points.items()}
        more = {point: self.axis.facts(point)._asdict() for point in generated.points(self.code)}
        return known | more


def _manifest(content: _Content) -> dict[str, str]:
    """What every view reads first; and what few views read: the problems, the generated code.

    ``generated``: the pack of each document. ``questions``: name, title and page of each.
    """
    problems = content.problems
    documents = {
        "problems": {
            "where": [one.where for one in problems],
            "reason": [one.reason for one in problems],
        },
        **content.code,
    }
    encoded = ((key, packs.encode(document)) for key, document in documents.items())
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    for pack, keys in packs.pack(encoded, shards.LARGE_BYTES):
        texts[pack.path] = pack.text
        places |= dict.fromkeys(keys, pack.name)
    manifest = {
        "noun": content.axis.noun,
        "machines": [made.entry for made in content.machines],
        "points": content.points,
        "problems": places.pop("problems"),
        "generated": places,
        "questions": [
            [one.name, one.title, GENERATED.file if one.of_targets else ANSWERS.file]
            for one in answers.questions()
        ],
    }
    text = packs.script(MANIFEST, [(MANIFEST, packs.encode(manifest))])
    return {**texts, f"{packs.FOLDER}/{MANIFEST}.js": text}


def _pages(content: _Content) -> dict[str, str]:
    axis, machines, problems, code = content
    of_releases = isinstance(axis, Releases)
    kinds = [*KINDS, TABLES, *([RELEASES] if of_releases else [])]
    labels = {point: facts["label"] for point, facts in content.points.items()}
    pages = {
        kind.file: render.page("shell.html", kind, kinds, sections=[], machines=[])
        for kind in KINDS
    }
    first = KINDS[0]
    sections = (
        plain.of_machine(machines[0].entry, machines[0].plain, labels, _FIRST)
        if machines
        else [Section("", ["Nothing was measured yet. Start with: nox -s bench"])]
    )
    pages[first.file] = render.page(
        "shell.html",
        first,
        kinds,
        sections=sections,
        machines=[made.entry for made in machines],
    )
    parts: list[tuple[dict[str, Any] | None, list[Section]]] = [
        (made.entry, _tables(made, labels)) for made in machines
    ]
    parts.append((None, [*plain.generated(code, labels), *plain.left_out(problems)]))
    pages[TABLES.file] = render.page("tables.html", TABLES, kinds, parts_of_page=parts)
    if of_releases:
        pages[RELEASES.file] = render.page(
            "releases.html", RELEASES, kinds, releases=_releases(machines)
        )
    return pages


def _tables(made: Shards, labels: dict[str, str]) -> list[Section]:
    every = len(made.plain["overview"]["groups"])
    return [
        *plain.of_machine(made.entry, made.plain, labels, every),
        *plain.answers(made.plain),
        plain.claims(made.plain),
        plain.trust(made.plain, labels),
    ]


class _Release(NamedTuple):
    """A release on the page that ASV's commit links lead to. ``id``: digits of its commit."""

    id: str
    label: str
    facts: list[tuple[str, str]]
    measured: list[tuple[str, str]]
    lock: str


def _releases(machines: Iterable[Shards]) -> list[_Release]:
    """All releases, newest first."""
    commits = ledger.commit_of()
    return [
        _release(release, commits[release.version], list(machines))
        for release in reversed(list(catalogue.everything()))
    ]


def _release(release: Release, commit: str, machines: list[Shards]) -> _Release:
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
        (
            made.entry["title"],
            plain.address(plain.INDEX, machine=made.entry["name"], at=release.version),
        )
        for made in machines
        if release.version in made.entry["points"]
    ]
    lock = release.lock.read_text() if release.lock.is_file() else ""
    return _Release(commit[: records.COMMIT_DIGITS], label(release.version), facts, measured, lock)


def _write_all(folder: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        # Text of a result file may hold half of a surrogate pair, which UTF-8 cannot encode.
        (folder / path).write_text(text, encoding="utf-8", errors="replace", newline="\n")
