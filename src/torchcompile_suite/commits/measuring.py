"""Measures commits, and keeps every launch in a file, so that a search can be interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ..analysis import change, statistics
from ..cell import METHOD, Cell, Launch, Plan
from ..host.files import append_line, read_lines
from ..measuring import settings
from ..measuring.launches import Elsewhere, judged, make_launch
from ..releases import environments
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


class Known(msgspec.Struct, frozen=True):
    """A line of the kept file: a launch of a commit, or why the commit cannot be measured."""

    commit: str
    launch: Launch | None = None
    refused: str = ""


class Measuring:
    """Measures one cell on commits of a clone, in one environment."""

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
        self._cell = cell
        self._metric = metric
        self._folder = folder
        self._kept = kept
        self._allow_native_drift = allow_native_drift
        self._plan = plan
        self._repeats = repeats
        self._report = report
        self._installed = ""
        # One cache for each commit: the environment changes between good and bad and back, and the
        # code that a commit compiled before stays valid.
        self._caches = folder / "caches"
        shutil.rmtree(self._caches, ignore_errors=True)
        self.launches: dict[str, list[Launch]] = {}
        self.refused: dict[str, str] = {}
        for known in read_lines(kept, Known):
            self._add(known)

    def values(self, commit: str) -> list[float]:
        """The metric, one value for each launch of the commit that counts."""
        return change.values(METRICS[self._metric], self.launches.get(commit, []))

    def measure(self, commit: str, count: int) -> None:
        """Measure until the commit has ``count`` values, or ``refused`` has the reason why not.

        If the cell does not have the metric, there are no values and no reason. Raises SuiteError
        if nothing can be measured at all.
        """
        for _ in range(1 + self._repeats):
            missing = count - len(self.values(commit))
            if missing <= 0 or commit in self.refused:
                return
            self._launch(commit, missing)

    def _launch(self, commit: str, count: int) -> None:
        """Make and keep ``count`` launches of the commit."""
        if not self._install(commit):
            return
        cache = self._caches / commit
        # The launch that fills the cache has no warm compile time.
        fills = self._metric == "warm-compile" and not cache.exists()
        self._report(f"{commit[:10]}: measuring")
        starter = Elsewhere(environments.python_in(self._folder / "environment"))
        with TemporaryDirectory(prefix="bisect-") as scratch:
            for number in range(count + fills):
                own = Path(scratch, str(number)) if self._metric == "cold-compile" else cache
                workspace = Path(scratch)
                launch = make_launch(
                    starter, self._cell, own, workspace, plan=self._plan, observe=False
                )
                if not launch.outcome.ok:
                    self._keep(Known(commit, refused=str(launch.outcome)))
                    return
                before = self.launches.get(commit, [])
                quiet_s = statistics.quietest(chain([launch], *self.launches.values()))
                self._keep(Known(commit, judged(launch, before, self._repeats, quiet_s)))

    def _install(self, commit: str) -> bool:
        """Make the environment hold the commit. False if it is refused: then the reason is kept."""
        if self._installed == commit:
            return True
        self._installed = ""
        self._report(f"{commit[:10]}: overlaying its files on its base")
        try:
            overlay.install(
                self._clone,
                commit,
                self._folder / "environment",
                allow_native_drift=self._allow_native_drift,
                # The first launch compiles, and checks accuracy before it times anything.
                gated=False,
            )
        except overlay.Refused as refused:
            self._keep(Known(commit, refused=str(refused)))
            return False
        self._installed = commit
        return True

    def _keep(self, known: Known) -> None:
        append_line(self._kept, msgspec.json.encode(known))
        self._add(known)

    def _add(self, known: Known) -> None:
        if known.launch is not None and known.launch.method != METHOD:
            return  # an older version of the suite kept it: measure again
        if known.launch is not None:
            self.launches.setdefault(known.commit, []).append(known.launch)
        else:
            self.refused[known.commit] = known.refused
