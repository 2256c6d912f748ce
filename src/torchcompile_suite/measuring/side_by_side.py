"""Series with real launches: releases side by side, each with its own Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ..cell import Launch, Measurement
from . import series
from .launches import Elsewhere, make_launch
from .series import Series, Watch
from .session import need_free
from .settings import NEEDED_FOR_CACHE_BYTES

# The remedy of a series that cannot go on now.
AGAIN = "run the same command again: it goes on"


def measure(
    pythons: Mapping[str, Path], plan: Series, folder: Path, watch: Watch
) -> dict[str, Measurement]:
    """Measure a series, or what is left of it: see `series.measure`.

    ``pythons``: the Python of each release. Raises SuiteError if the folder's disk has no room for
    compiled code.
    """

    def make(release: str, cache: Path) -> Launch:
        # A disk that fills up is the fault of no release.
        need_free(folder, NEEDED_FOR_CACHE_BYTES, "compiled code", AGAIN)
        with TemporaryDirectory(prefix="launch-", ignore_cleanup_errors=True) as workspace:
            return make_launch(
                Elsewhere(pythons[release]),
                plan.cell,
                cache,
                Path(workspace),
                plan=plan.plan,
                limit_s=plan.launch_limit_s,
            )

    folder.mkdir(parents=True, exist_ok=True)
    return series.measure(plan, make, folder, watch)
