"""Writes the report: shards of data, a page for each kind of question, scripts and the style."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..analysis import summaries
from ..host import workers
from ..modes import EAGER, MODES
from ..presentation import answers
from ..results import records
from ..results.machines import classes, in_order
from ..results.parsing import Problem
from . import packs, render, sections, shards, stories
from .axis import Axis, Releases
from .cells import ABOUT, grouped
from .content import code_of
from .documents import generated
from .render import Content
from .shards import Shards

ASSETS = Path(__file__).with_name("assets")
MANIFEST = "manifest"
# A machine of 1,000 cells in 12 releases takes half a GiB of memory.
_MOST_WORKERS = 8


def build(
    results: Path,
    folder: Path,
    left_out: Sequence[Problem] = (),
    axis: Axis | None = None,
    told: Path | None = None,
) -> list[Problem]:
    """Write the report on ``results`` into ``folder``, which is empty or does not exist.

    ``axis``: what the results are of; else releases. ``told``: a folder of stories, in that of the
    guides. Returns the problems: those of ``left_out``, then what this function could not read or
    show. Raises OSError.
    """
    axis = axis or Releases()
    (folder / packs.FOLDER).mkdir(parents=True)
    machines: dict[str, Shards] = {}

    def keep(made: Shards | None) -> None:
        if made is not None:
            _write_all(folder, made.texts)
            made.texts.clear()
            machines[made.entry["name"]] = made

    folders, linked = records.machine_folders(results)
    problems = [*left_out, *linked]
    generated_code = summaries.read_generated(results)
    code = code_of(generated_code, axis)
    of_machine = partial(shards.of_machine, axis=axis, code=code)
    for made, of_folder in workers.each(of_machine, folders, _MOST_WORKERS):
        problems += of_folder
        keep(made)
    known = classes(results)
    shown = [one for one in folders if one.name in machines and one.name in known]
    for hardware, of_class in sorted(grouped(shown, lambda one: known[one.name]).items()):
        if len(of_class) > 1:
            keep(shards.of_class(hardware, of_class, axis, code))
    # The site opens with the first machine, which is the one that commands take, too.
    standings = {name: made.standing for name, made in machines.items()}
    of_classes = {name for name, made in machines.items() if "machines" in made.entry}
    ordered = [machines[name] for name in in_order(standings, first=of_classes)]
    documents = generated.documents(generated_code, axis)
    points = {point: facts for made in ordered for point, facts in made.points.items()}
    points |= {point: axis.facts(point)._asdict() for point in generated.points(documents)}
    # What ASV's files are made of was read before.
    problems = list(dict.fromkeys(problems))
    of_stories = stories.read(told) if told and isinstance(axis, Releases) else []
    of_guides = stories.guides(told.parent) if told else []
    content = Content(axis, ordered, points, problems, documents, of_stories, of_guides)
    pages = render.pages(content)
    _write_all(folder, _manifest(content, [*pages]))
    _write_all(folder, pages)
    shutil.copytree(ASSETS, folder, dirs_exist_ok=True)
    return problems


def _manifest(content: Content, pages: Sequence[str]) -> dict[str, str]:
    """What every view reads first; and what few views read: the problems, the generated code.

    ``groups``: the questions of cells, and ``modes``, in their orders. ``generated``: the pack of
    each document. ``questions``: name, title and page of each. ``stories``: title, page, releases
    and models of each. ``releases``: the pages about one.
    """
    problems = packs.table(["where", "reason"], content.problems)
    documents = {"problems": problems, **content.code}
    encoded = ((key, packs.encode(document)) for key, document in documents.items())
    texts: dict[str, str] = {}
    places = packs.add(encoded, shards.LARGE_BYTES, texts)
    manifest = {
        "noun": content.axis.noun,
        "styles": sections.STYLES,
        "groups": list(ABOUT),
        "modes": [*(mode for mode in MODES if mode != EAGER), EAGER],
        "machines": [made.entry for made in content.machines],
        "points": content.points,
        "problems": places.pop("problems"),
        "generated": places,
        "releases": [page for page in pages if page.startswith("release-")],
        "stories": [
            [one.title, one.file, one.releases, one.models, one.only] for one in content.stories
        ],
        "questions": [
            [one.name, one.title, (render.GENERATED if one.of_targets else render.ANSWERS).file]
            for one in answers.QUESTIONS
        ],
    }
    text = packs.script(MANIFEST, [(MANIFEST, packs.encode(manifest))])
    return {**texts, f"{packs.FOLDER}/{MANIFEST}.js": text}


def _write_all(folder: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
