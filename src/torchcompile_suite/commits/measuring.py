"""Measures commits, and keeps what was measured, so that a search can be interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import msgspec

from ..analysis import change, statistics
from ..cell import METHOD, Cell, Launch, Plan
from ..host.files import append_line, read_lines
from ..measuring import interpreter, session, settings
from ..releases import environments
from . import overlay
from .clone import Clone
from .worker import Order

# What a search can go by, and the figure of `change.QUANTITIES` that it is.
METRICS = {
    "ratio": "time ratio",
    "latency": "compiled",
    "eager": "eager",
    "cold-compile": "cold compile",
    "warm-compile": "warm compile",
    "memory": "memory",
}
USUAL = Plan()


class Known(msgspec.Struct, frozen=True):
    """A line of what is kept: a launch of a commit, or why that cannot be measured."""

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
        plan: Plan = USUAL,
        repeats: int = settings.MOST_REPEATS,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Environment and compilers' caches go to ``folder``, what is found to the file ``kept``,
        whose content counts. ``metric`` is one of `METRICS`. Of a commit at most ``repeats``
        disturbed launches are made again; ``tell`` hears what takes time.
        """
        self._clone = clone
        self._cell = cell
        self._metric = metric
        self._folder = folder
        self._kept = kept
        self._allow_native_drift = allow_native_drift
        self._plan = plan
        self._repeats = repeats
        self._tell = tell
        self._installed = ""
        # One a commit: good and bad are measured in turns, and what they compiled is still true.
        self._caches = folder / "caches"
        shutil.rmtree(self._caches, ignore_errors=True)
        self.launches: dict[str, list[Launch]] = {}
        self.refused: dict[str, str] = {}
        for known in read_lines(kept, Known):
            self._add(known)

    def values(self, commit: str) -> list[float]:
        """The metric of each of the commit's launches that counts."""
        return change.values(METRICS[self._metric], self.launches.get(commit, []))

    def measure(self, commit: str, count: int) -> None:
        """Measure until there are so many values, or ``refused`` says why there are none. A metric
        that the cell does not have gives none without a reason.

        Raises SuiteError where nothing can be measured at all.
        """
        for _ in range(1 + self._repeats):
            missing = count - len(self.values(commit))
            if missing <= 0 or commit in self.refused:
                return
            self._launch(commit, missing)

    def _launch(self, commit: str, count: int) -> None:
        if self._installed != commit:
            self._installed = ""
            self._tell(f"{commit[:10]}: laying it over its base")
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
                return
            self._installed = commit
        cold = self._metric == "cold-compile"
        cache = self._caches / commit
        # The launch that fills the cache has no warm compile to tell.
        fills = self._metric == "warm-compile" and not cache.exists()
        order = Order(self._cell, count + fills, str(cache), cold=cold, plan=self._plan)
        python = environments.python_in(self._folder / "environment")
        self._tell(f"{commit[:10]}: measuring")
        said = interpreter.ask(
            python, "torchcompile_suite.commits.worker", msgspec.json.encode(order)
        )
        # A worker that was killed may have torn its last line.
        lines = said.out.splitlines(keepends=True)
        found = [msgspec.json.decode(line, type=Launch) for line in lines if line.endswith(b"\n")]
        for launch in found:
            if not launch.outcome.ok:
                outcome = launch.outcome
                self._keep(Known(commit, refused=f"{outcome.status.value}: {outcome.reason}"))
                return
            made = self.launches.get(commit, [])
            quiet_s = statistics.quietest(chain([launch], *self.launches.values()))
            self._keep(Known(commit, session.set_aside(launch, made, self._repeats, quiet_s)))
        if not found:
            self._keep(Known(commit, refused=f"nothing was measured: {said.last_line}"))

    def _keep(self, known: Known) -> None:
        append_line(self._kept, msgspec.json.encode(known))
        self._add(known)

    def _add(self, known: Known) -> None:
        if known.launch is not None and known.launch.method != METHOD:
            return  # kept by an older version of the suite: measured again
        if known.launch is not None:
            self.launches.setdefault(known.commit, []).append(known.launch)
        else:
            self.refused[known.commit] = known.refused
