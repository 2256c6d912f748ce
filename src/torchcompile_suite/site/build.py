"""Writes the report: every page with its data, and what they all need."""

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
    """Write the report on ``results`` into ``folder``, which must not exist or be empty.

    Returns what it shows; its ``problems`` are those of ``left_out``, then what it left out itself.
    Raises OSError.
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
    # A result file may hold half of a surrogate pair, which no encoding has.
    file.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _navigation(content: Content) -> list[render.Entry]:
    """The newest of each kind on the first machine; the pages themselves lead to the others."""
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
