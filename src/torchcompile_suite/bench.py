"""``torchcompile-suite bench``: the main job in one go, through ASV's own commands.

Runs ``asv run`` on a quick selection of cells, ``asv publish``, and prints what was found.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from . import asv_command, machine
from .releases import catalogue
from .releases.catalogue import Release
from .session import BUDGET_VARIABLE

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
        asv_command.run("run", f"{release.tag}^!", "--bench", quick, "--show-stderr", accept=(0, 2))
    asv_command.run("publish")
    if len(releases) == 2:
        print(flush=True)
        asv_command.run(
            "compare", *(release.tag for release in releases), "--machine", machine.detect().machine
        )
    return releases
