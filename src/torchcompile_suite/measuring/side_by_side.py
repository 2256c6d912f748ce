"""Series with real launches: one server for each release (`server`), side by side.

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
from .session import need_free
from .settings import NEEDED_FOR_CACHE_BYTES

# The remedy of a series that cannot go on now.
AGAIN = "run the same command again: it goes on"


class Releases:
    """Releases whose series are measured here. Their servers stay for the next series."""

    def __init__(self, pythons: Mapping[str, Path]) -> None:
        """``pythons``: the Python of each release. Nothing starts yet."""
        self._servers = {release: Launches(python) for release, python in pythons.items()}

    def measure(self, plan: Series, folder: Path, watch: Watch) -> dict[str, Measurement]:
        """Measure a series, or what is left of it: see `series.measure`.

        Raises SuiteError if the folder's disk has no room for compiled code.
        """

        def make(release: str, cache: Path) -> Launch:
            # A disk that fills up is the fault of no release.
            need_free(folder, NEEDED_FOR_CACHE_BYTES, "compiled code", AGAIN)
            order = Order(plan.cell, str(cache), plan.plan, limit_s=plan.launch_limit_s)
            return self._servers[release].make(order)

        folder.mkdir(parents=True, exist_ok=True)
        return series.measure(plan, make, folder, watch)

    def close(self) -> None:
        """End the servers and their processes."""
        with ExitStack() as stack:
            for server in self._servers.values():
                stack.enter_context(closing(server))
