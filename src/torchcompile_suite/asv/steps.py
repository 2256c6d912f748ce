"""ASV's graphs: what is computed of them is kept, the steps in the user's cache folder.

ASV looks for steps at each publish, in every series that was ever measured, and hands each series
to its processes one by one. Most of the series have not changed since the last time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from asv import graph, step_detect
from asv.graph import Graph

from ..results import cached
from ..results.cached import Made

# Revision, value, weight; the last two may be missing.
Series = Sequence[tuple[int, Any, Any]]
# Left revision, right revision, value, smallest value, error.
Steps = list[tuple[int, int, int | float, int | float, int | float]]
# Series of a task, and of a file of the cache.
_MANY = 50


class _Part(NamedTuple):
    """One series of a task, as ASV waits for it."""

    task: AsyncResult[list[Steps]]
    place: int

    def get(self) -> Steps:
        """The steps of the series, when the task has ended."""
        return self.task.get()[self.place]


def detect(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Graph.detect_steps`, for many series at a time."""

    def detect_steps(self: Graph, pool: Any = None) -> None:
        values = self.get_data()
        if self._steps is not None or pool is None or not values or self.scalar_series:
            original(self, pool)
            return
        self._steps = []
        for first in range(0, self.n_series, _MANY):
            places = range(first, min(first + _MANY, self.n_series))
            series = [[(at, value[j], weight[j]) for at, value, weight in values] for j in places]
            task = pool.apply_async(_steps, (series,))
            self._steps += [_Part(task, place) for place in range(len(series))]

    return detect_steps


def data(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Graph.get_data`, which reduces the same points once."""

    def get_data(self: Graph) -> Any:
        points = sum(map(len, self.data_points.values()))
        if getattr(self, "_reduced", (None,))[0] != points:
            self._reduced = (points, original(self))
        return self._reduced[1]

    return get_data


def get(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Graph.get_steps`, which waits for the steps of all series once."""

    def get_steps(self: Graph) -> Any:
        if not hasattr(self, "_found_steps"):
            self._found_steps = original(self)
        return self._found_steps

    return get_steps


def _steps(many: list[Series]) -> list[Steps]:
    """The steps of each series, from the user's cache or made now."""
    sources = (Path(graph.__file__), Path(step_detect.__file__))
    key = (cached.version(*sources), msgspec.msgpack.encode(many))

    def make() -> Made:
        found = [graph._compute_graph_steps(series) for series in many]
        return Made(msgspec.msgpack.encode(found))

    return msgspec.msgpack.decode(cached.get("steps", key, make), type=list[Steps])
