"""A series with real launches: one server for each release (`server`), side by side.

Apart from `server`, because a server runs in the environment of a release and imports little.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from ..cell import Launch, Measurement
from . import series
from .series import Series, Watch
from .server import Launches, Order


def measure(
    plan: Series, pythons: Mapping[str, Path], folder: Path, watch: Watch
) -> dict[str, Measurement]:
    """Measure a series, or what is left of it. ``pythons``: the Python of each release.

    See `series.measure`.
    """
    with ExitStack() as stack:
        servers = {
            release: stack.enter_context(closing(Launches(python)))
            for release, python in pythons.items()
        }

        def make(release: str, cache: Path) -> Launch:
            order = Order(plan.cell, str(cache), plan.plan, limit_s=plan.launch_limit_s)
            return servers[release].make(order)

        return series.measure(plan, make, folder, watch)
