"""``torchcompile-suite history``: many releases measured beside each other, on one machine.

The unit of work is a series: one cell over several releases, measured in turns
(`engine.series`). ``asv run --interleave-rounds`` measures the series and writes ASV's results.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from .. import matrix
from ..asv import command
from ..engine.settings import BUDGET_VARIABLE, LAUNCHES_VARIABLE
from ..errors import SuiteError
from ..host import machine
from ..presentation.wording import printable
from ..releases import catalogue, environments, room
from ..releases.catalogue import Release
from .options import releases_argument, rounds_option

# Seconds for each release of a series: a cold launch and some six warm ones.
BUDGET_S = 75
# What asv.conf.json calls the environments of releases.
ENVIRONMENT = "torch-release"


def run(
    releases: Sequence[Release], patterns: Sequence[str], *, skip_existing: bool, rounds: int | None
) -> None:
    """Measure the cells that match an expression of ``asv run --bench`` in turns.

    Releases whose environments do not all fit on the disk are measured in groups, and so are
    releases that no Python supports together. Raises SuiteError. What was measured stays on disk,
    and the same call goes on.
    """
    os.environ.setdefault(BUDGET_VARIABLE, str(BUDGET_S))
    variables = {LAUNCHES_VARIABLE: str(rounds)} if rounds else {}
    selected = [argument for pattern in patterns for argument in ("--bench", pattern)]
    selected += ["--skip-existing"] * skip_existing
    usual = command.python()
    # Another clone, or another machine with the same home folder, has groups of its own.
    wanted = json.dumps([*patterns, rounds, str(Path.cwd()), machine.detect().machine])
    by = by_python(releases, usual)
    for python, together in by.items():
        if python != usual and len(by) > 1:
            click.echo(
                f"\nnot in turns with the others: PyTorch {_versions(together)}, which is measured "
                f"with Python {python} and not with {usual}"
            )
        click.echo(room.line(together, python))
        options = ["--environment", f"{ENVIRONMENT}:{python}"] if python != usual else []
        groups = room.groups(together, python, wanted)
        for number, group in enumerate(groups, 1):
            if len(groups) > 1:
                click.echo(f"\n== group {number} of {len(groups)}: {_versions(group)} ==")
            _run(group, [*options, *selected], variables)
            for fault in room.finished(together, python, wanted):
                click.echo(printable(fault), err=True)


def by_python(releases: Sequence[Release], usual: str) -> dict[str, list[Release]]:
    """The releases by the Python to measure them with, those of the ``usual`` one first.

    A release that the usual one cannot run gets the oldest Python that it supports. An adopted
    environment decides for its release.
    """
    found: dict[str, list[Release]] = {usual: []}
    for release in releases:
        python = environments.adopted(release)
        python = python or (usual if release.supports(usual) else release.usable_pythons[0])
        found.setdefault(python, []).append(release)
    return {python: together for python, together in found.items() if together}


def _versions(releases: Sequence[Release]) -> str:
    return ", ".join(release.version for release in releases)


def _run(releases: Sequence[Release], options: Sequence[str], variables: Mapping[str, str]) -> None:
    """One ``asv run`` over exactly these releases."""
    with tempfile.TemporaryDirectory(prefix="history-") as folder:
        commits = Path(folder, "commits")
        commits.write_text("".join(f"{release.tag}\n" for release in releases))
        command.run(
            *("run", f"HASHFILE:{commits}", "--interleave-rounds", "--show-stderr", *options),
            # Status 2 means that some cells failed. Their outcome is recorded.
            accept=(0, 2),
            variables=variables,
        )


def newest_patches(releases: Sequence[Release]) -> list[Release]:
    """The newest patch of every minor version, oldest first."""
    # Of one minor version the last one stays.
    return list({release.minor: release for release in in_order(releases)}.values())


def chosen_releases(names: Sequence[str] | None) -> list[Release]:
    """The named releases; without a name, the newest patch of every minor version."""
    chosen = in_order([catalogue.find(name) for name in names or []])
    return chosen or newest_patches(catalogue.read())


def in_order(releases: Sequence[Release]) -> list[Release]:
    """The releases, each once, oldest first."""
    return sorted(dict.fromkeys(releases), key=lambda release: release.key)


def _patterns(cells: str) -> list[str]:
    if cells == "core":
        return matrix.core_patterns()
    if cells == "history":
        return [pattern for cell in matrix.SERIES if (pattern := matrix.pattern(cell))]
    return ["." if cells == "all" else cells]


@click.command()
@releases_argument
@click.option(
    "--cells",
    default="history",
    help=f"core, history (the {len(matrix.SERIES)} of the published history: 15 "
    "hours), all (days), or an expression for asv run --bench.",
)
@rounds_option
def history_command(releases: tuple[str, ...], cells: str, rounds: int | None) -> None:
    """Measure releases beside each other, each cell in turns; go on where it stopped.

    Each round makes one launch of each release. A cell ends when its ratios are precise and
    neighbouring releases are told apart or surely equal, or with its budget.

    Example: torchcompile-suite history v2.4 v2.9 v2.15 --cells "Inference.*'resnet18'"
    """
    chosen = chosen_releases(releases)
    if len(chosen) < 2:
        raise SuiteError(
            f"a series has at least two releases; for one release: asv run {chosen[0].tag}^!"
        )
    run(chosen, _patterns(cells), skip_existing=True, rounds=rounds)
    click.echo(f"\nmeasured now or before: {_versions(chosen)}. To see the history: nox -s site")
