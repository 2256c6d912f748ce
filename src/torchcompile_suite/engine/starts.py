"""One launch of cold starts. A turn is a whole process, from its start to its first result.

The time is that of whoever starts the process: from before the start to the message that says that
there is a result. Pairs, calibration and interference are those of `turns`. Each process is new and
finds an empty cache folder, except the one with ``disk-cache``.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from ..host.files import write_atomically
from ..launch import caches, messages, progress
from ..launch.progress import rounded
from ..measurement import METHOD, Launch, Started
from ..request import Request, Side
from . import turns
from .calibration import CalibrationLoop, threads_for
from .interference import Watch, of_tree, on_device

# Starts a process: its log, its module, further environment variables, further arguments.
Spawn = Callable[[Path, str, Mapping[str, str], Sequence[str]], turns.Process]
MEASURING = "torchcompile_suite.launch"


def launch(
    spawn: Spawn,
    request: Request,
    workspace: Path,
    limit_s: float,
    calibrate: turns.Calibrate = CalibrationLoop,
) -> Launch:
    """As `turns.launch`, for a cell with a ``start``. ``spawn`` starts a process.

    The request's cache folder is that of the cell: the first launch in it prepares what the
    services find, the later ones use the same.
    """
    made = _Launch(spawn, request, workspace, time.monotonic() + limit_s, calibrate)
    return turns.guarded(made.make, request, limit_s)


class _Run(NamedTuple):
    """One process: seconds to the first result, and of each phase."""

    seconds: float
    phases_s: dict[str, float]


@dataclasses.dataclass
class _Launch:
    _spawn: Spawn
    _request: Request
    _workspace: Path
    _deadline: float
    _calibrate: turns.Calibrate
    _checked: Launch | None = None

    def __post_init__(self) -> None:
        self._cell = self._request.cell
        self._folder = Path(self._request.cache_dir).resolve()
        self._watch = Watch()

    def make(self) -> Launch:
        """Prepare, unless an earlier launch has, and take turns. Raises as `turns.guarded` says."""
        stages_s = {} if (self._folder / messages.PREPARED).exists() else self._prepare()
        self._prepared = msgspec.json.decode(
            (self._folder / messages.PREPARED).read_bytes(), type=messages.Prepared
        )
        begun = time.perf_counter()
        plan = self._request.plan

        def enough(taken: dict[Side, list[_Run]], spent_s: float) -> bool:
            return len(taken["mode"]) >= plan.most_starts or spent_s >= plan.starts_s

        threads = threads_for(self._cell.device, self._prepared.threads)
        with (
            self._calibrate(threads) as calibration,
            on_device(self._cell.device) as self._device,
        ):
            runs = turns.alternate(self._turn, enough, calibration, self._first())
        stages_s["turns"] = round(time.perf_counter() - begun, 4)
        assert self._checked is not None
        return msgspec.structs.replace(
            self._checked,
            kind=self._request.kind,
            stages_s=stages_s,
            pairs_s=[
                (rounded(eager.seconds), rounded(mode.seconds))
                for eager, mode in zip(runs["eager"], runs["mode"], strict=True)
            ],
            warm_up_s=[runs["mode"][0].phases_s["first call"]],
            method=METHOD,
            interference=self._watch.shares(self._device.state()),
            calibration_s=calibration.seconds,
            start=Started(
                _phases(runs["mode"]), self._prepared.artefact_bytes, self._prepared.loader
            ),
            eager_start=Started(_phases(runs["eager"])),
        )

    def _prepare(self) -> dict[str, float]:
        """Fill the folder. Returns the seconds of each stage."""
        shutil.rmtree(self._folder, ignore_errors=True)
        cache = self._folder / messages.CACHE
        cache.mkdir(parents=True)
        process = self._spawn(self._workspace / "prepare.log", MEASURING, {}, ())
        request = msgspec.structs.replace(self._request, cache_dir=str(cache))
        return dict(turns.whole(process, request, self._deadline).stages_s)

    def _first(self) -> Side:
        """The side that starts first: it changes from launch to launch."""
        file = self._folder / messages.LAUNCHES
        made = int(file.read_text()) if file.exists() else 0
        write_atomically(file, str(made + 1).encode())
        return "eager" if made % 2 == 0 else "mode"

    def _turn(self, side: Side) -> _Run:
        what = "eager starts" if side == "eager" else "starts"
        progress.note("stage", str(self._cell), what)
        empty = Path(tempfile.mkdtemp(dir=self._workspace, prefix="start-"))
        keeps = side == "mode" and self._cell.start == "disk-cache"
        cache = self._folder / messages.CACHE if keeps else empty
        log = self._workspace / f"{side}.log"
        order = msgspec.json.encode(self._order(side)).decode()
        variables = caches.with_temporary(cache)
        self._watch.begin()
        begun = time.monotonic()
        process = self._spawn(log, messages.SERVICE, variables, [order])
        try:
            said = turns.expect(process, messages.FirstResult, self._deadline)
            seconds = time.monotonic() - begun
            self._watch.end(functools.partial(of_tree, process.pid))
            self._device.read({process.pid, os.getpid()})
            if side == "mode" and self._checked is None:
                process.say(messages.Finish())
                self._checked = turns.expect(process, messages.Ended, self._deadline).launch
        finally:
            process.end()
            shutil.rmtree(empty, ignore_errors=True)
        return _Run(seconds, _durations(begun, said.ended_s))

    def _order(self, side: Side) -> messages.Service:
        cell, compiled = self._cell, side == "mode"
        return messages.Service(
            workload=cell.workload,
            batch_size=cell.batch_size,
            mode=cell.mode,
            device=cell.device,
            start=cell.start if compiled else "",
            seed=self._prepared.seed,
            folder=str(self._folder),
            loader=self._prepared.loader if compiled else "",
            kind=self._request.kind,
        )


def _durations(begun: float, ended_s: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each phase. The clock is the system's, so all processes read the same one."""
    readings = [begun, *ended_s.values()]
    taken = (after - before for before, after in pairwise(readings))
    return {name: rounded(max(0.0, seconds)) for name, seconds in zip(ended_s, taken, strict=True)}


def _phases(runs: Sequence[_Run]) -> dict[str, float]:
    """The median of each phase over the processes."""
    return {name: median(run.phases_s[name] for run in runs) for name in runs[0].phases_s}
