"""Measures commits, and keeps every launch in a file, so that a search can be interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ..analysis import change
from ..cell import Cell
from ..engine import launches, rounds, settings
from ..engine.journal import in_file
from ..engine.processes import of_release
from ..engine.series import Series
from ..engine.settings import NEEDED_FOR_CACHE_BYTES
from ..host.files import need_free
from ..measurement import Launch
from ..releases import environments
from ..request import Plan
from . import overlay
from .clone import Clone

# The metrics of a search, as the command line names them: name in `change.QUANTITIES`.
METRICS = {
    "ratio": "time ratio",
    "latency": "compiled",
    "eager": "eager",
    "cold-compile": "cold compile",
    "warm-compile": "warm compile",
    "memory": "memory",
}
DEFAULT_PLAN = Plan()
_AGAIN = "then continue with --resume"


class Measuring:
    """Measures one cell on commits of a clone, in one environment. See `bisection.Measures`."""

    def __init__(
        self,
        clone: Clone,
        cell: Cell,
        metric: str,
        folder: Path,
        kept: Path,
        *,
        allow_native_drift: bool = False,
        plan: Plan = DEFAULT_PLAN,
        repeats: int = settings.MOST_REPEATS,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare a search.

        - ``metric``: one of `METRICS`.
        - ``folder``: for the environment and the compilers' caches.
        - ``kept``: the file of all launches. Launches that are already in it count.
        - ``repeats``: the largest number of disturbed launches of a commit that are repeated.
        - ``report``: gets a line before each step that takes time.
        """
        self._clone = clone
        self._metric = METRICS[metric]
        self._environment = folder / "environment"
        self._allow_native_drift = allow_native_drift
        self._report = report
        self._installed = ""
        self._told = ""
        # One cache for each commit: the environment changes between good and bad and back, and the
        # code that a commit compiled before stays valid.
        caches = folder / "caches"
        shutil.rmtree(caches, ignore_errors=True)
        caches.mkdir(parents=True)
        self._series = Series(cell, (), repeats=repeats, plan=plan, having=self._metric)
        self._journal = in_file(kept, cell, caches)
        # What was at fault may be mended, and an overlay that does not fit is seen at once.
        self._journal.forgive()

    @property
    def launches(self) -> dict[str, list[Launch]]:
        """All launches of each commit."""
        return {commit: made for commit, made in self._journal.launches.items() if made}

    @property
    def refused(self) -> dict[str, str]:
        """The commits that cannot be measured, with the reason."""
        return self._journal.refused

    def values(self, commit: str) -> list[float]:
        """The metric, one value for each launch of the commit that counts."""
        return change.values(self._metric, self._journal.launches[commit])

    def measure(self, commit: str, count: int) -> None:
        """Measure until the commit has ``count`` values, or ``refused`` has the reason why not.

        If the cell does not have the metric, there are no values and no reason. Raises SuiteError
        if nothing can be measured at all.
        """
        self._told = ""
        wanted = msgspec.structs.replace(self._series, releases=(commit,), rounds=count)
        rounds.measure(wanted, self._make, self._journal)

    def _make(self, commit: str, cache: Path) -> Launch:
        # A disk that fills up is the fault of no commit.
        need_free(cache.parent, NEEDED_FOR_CACHE_BYTES, f"compiled code ({cache.parent})", _AGAIN)
        self._install(commit)
        if self._told != commit:
            self._told = commit
            self._report(f"{commit[:10]}: measuring")
        environment = of_release(environments.python_in(self._environment))
        with TemporaryDirectory(prefix="bisect-") as empty:
            own = Path(empty) if self._metric == METRICS["cold-compile"] else cache
            launch = launches.of_series(environment, self._series, own, observe=False)
        if not launch.outcome.ok:
            raise launches.Refused(str(launch.outcome))
        return launch

    def _install(self, commit: str) -> None:
        """Make the environment hold the commit. Raises `launches.Refused`."""
        if self._installed == commit:
            return
        self._installed = ""
        self._report(f"{commit[:10]}: overlaying its files on its base")
        overlay.install(
            self._clone,
            commit,
            self._environment,
            allow_native_drift=self._allow_native_drift,
            any_python=True,
        )
        self._installed = commit
