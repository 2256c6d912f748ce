"""``torchcompile-suite bench``: the main job in one go, through ASV's own commands.

Runs ``asv run`` on a quick selection of cells, ``asv publish``, and prints what was found.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from ..asv import command
from ..host import machine
from ..measuring.settings import BUDGET_VARIABLE
from ..presentation.terminal import one_line_errors
from ..releases import catalogue
from ..releases.catalogue import Release
from ..results.records import SUFFIX
from .recorded import RESULTS, read_records
from .report import Format, compare_releases, print_comparison, print_report

# A convolution net, a mobile one, a published and a hand-written transformer: each of them in the
# mode most people use. The compiled cell measures eager too, interleaved, so eager needs none.
QUICK = (
    r"Inference.*\('(resnet18|mobilenetv3_small_100|vit_tiny_patch16_224|vit16x6x384)', "
    r"1, 'default'\)"
)

# A first answer within minutes even on a noisy machine; `asv run` itself takes longer to be surer.
QUICK_BUDGET_S = 75


def run(names: Sequence[str], quick: str = QUICK) -> list[Release]:
    """Measure the named releases (the newest when none is named), publish, compare.

    Returns the releases measured. Raises AsvError or ReleaseError; what was measured before
    stays on disk.
    """
    os.environ.setdefault(BUDGET_VARIABLE, str(QUICK_BUDGET_S))
    everything = catalogue.read()
    releases = [catalogue.find(name) for name in names] or [everything[-1]]
    for number, release in enumerate(releases, 1):
        print(
            f"\n== PyTorch {release.version} ({number} of {len(releases)}) on "
            f"{machine.detect().machine}: the first time it downloads several GB ==",
            flush=True,
        )
        # Status 2 means that some cells failed: their outcome is recorded, so the job goes on.
        command.run("run", f"{release.tag}^!", "--bench", quick, "--show-stderr", accept=(0, 2))
    command.run("publish")
    if len(releases) == 2:
        print(flush=True)
        command.run(
            "compare", *(release.tag for release in releases), "--machine", machine.detect().machine
        )
    return releases


def bench_command(
    releases: Annotated[
        list[str] | None, typer.Argument(help="Such as v2.4 v2.9; the newest when none is named.")
    ] = None,
) -> None:
    """Measure a quick selection of cells, publish the site and print the result.

    Example: torchcompile-suite bench v2.4 v2.9
    """
    with one_line_errors():
        # To the second, as records say it; results that came with the clone are not this run's.
        began = datetime.now(timezone.utc).isoformat(timespec="seconds")
        measured = run(releases or [])
        print()
        versions = [release.version for release in measured]
        here = machine.detect().machine
        found = [record for record in read_records() if record.measurement.started_at >= began]
        print_report(found, versions, here, Format.TABLE)
        if len(versions) == 2:
            comparison = compare_releases(found, versions[0], versions[1], here)
            print_comparison(comparison, Format.TABLE, everything=True)
        # Whoever ran this through nox has no asv on the PATH.
        asv = os.path.relpath(Path(sys.executable).with_name("asv"))
        typer.echo(f"\nRaw records: {RESULTS}/{here}/*{SUFFIX}")
        typer.echo(f"To open the history site: {asv} preview")
