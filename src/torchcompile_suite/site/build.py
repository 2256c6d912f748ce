"""Writes the report: every page with its data, and the style sheet."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ..results.records import Problem
from . import paths, render
from .content import Content, load
from .pages import (
    cell,
    changes,
    claims,
    compiler,
    compiling,
    history,
    overview,
    payoff,
    releases,
    trust,
)

ASSETS = Path(__file__).with_name("assets")
KINDS = (overview, payoff, history, changes, compiling, compiler, claims, trust, cell, releases)


def build(results: Path, folder: Path, left_out: Sequence[Problem] = ()) -> Content:
    """Write the report on ``results`` into ``folder``, which is empty or does not exist.

    Returns the content of the report. Its ``problems`` are those of ``left_out``, then the files
    and lines that this function could not read. Raises OSError.
    """
    content = load(results, left_out)
    navigation = _navigation(content)
    for kind in KINDS:
        for page in kind.pages(content):
            _write(folder / page.path, render.html(page, navigation))
            if page.data:
                _write(folder / render.data_path(page, "json"), render.as_json(page))
                _write(folder / render.data_path(page, "csv"), render.as_csv(page))
    shutil.copy2(ASSETS / render.STYLE, folder / render.STYLE)
    return content


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Text of a result file may hold half of a surrogate pair, which UTF-8 cannot encode.
    file.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _navigation(content: Content) -> list[render.Entry]:
    """Links to the newest page of each kind on the first machine; pages link to the others."""
    entries = [render.Entry("overview", "Overview", paths.OVERVIEW)]
    if content.machines:
        first = content.machines[0]
        entries += [
            render.Entry("payoff", "Does it pay?", payoff.path(first, first.releases[-1])),
            render.Entry("history", "History", paths.history(first.name)),
        ]
        if len(first.releases) > 1:
            entries.append(render.Entry("changes", "What changed", changes.path(first)))
        entries += [
            render.Entry("compiling", "Cost", compiling.path(first)),
            render.Entry("compiler", "Compiler", compiler.path(first)),
            render.Entry("claims", "Claims", claims.path(first)),
            render.Entry("trust", "Trust", paths.trust(first.name)),
        ]
    return [*entries, render.Entry("releases", "Releases", paths.RELEASES)]
