"""The steps of ASV's series are those of ASV itself, and are looked for once."""

from __future__ import annotations

import inspect
import random
from pathlib import Path
from typing import Any

import pytest
from asv import graph, util
from asv.graph import Graph

from torchcompile_suite.asv import steps

DETECT = inspect.unwrap(Graph.detect_steps)
SERIES = 120


pytestmark = pytest.mark.usefixtures("empty_cache")


def filled(changed: int | None = None) -> Graph:
    """Twelve releases of many series: some with a step, some with gaps, one without a value."""
    chosen = random.Random(1)
    made = Graph("inference.Inference.track_latency", {"machine": "box"})
    for revision in range(12):
        values: list[float | None] = []
        weights: list[float | None] = []
        for place in range(SERIES):
            value = chosen.lognormvariate(0, 0.01) * (2 if place % 3 == 0 and revision > 5 else 1)
            gap = place == 7 or chosen.random() < 0.1
            values.append(None if gap else value * (1.5 if place == changed else 1))
            weights.append(None if gap or place % 5 == 0 else chosen.uniform(0.5, 2))
        made.add_data_point(revision, values, weights)
    return made


def found(of: Graph) -> Any:
    """The steps, found by the processes of a pool, which ends as `asv publish` ends it."""
    pool = util.get_multiprocessing_pool(2)
    try:
        steps.detect(DETECT)(of, pool)
        pool.close()
        pool.join()
        return of.get_steps()
    finally:
        pool.terminate()


def test_the_steps_are_those_of_asv(empty_cache: Path) -> None:
    wanted = filled()
    DETECT(wanted)
    assert found(filled()) == wanted.get_steps()
    assert len([file for file in empty_cache.rglob("*") if file.is_file()]) == 3
    # Without a pool, as ASV calls it for a single graph.
    alone = filled()
    steps.detect(DETECT)(alone)
    assert alone.get_steps() == wanted.get_steps()


def test_only_what_changed_is_looked_at_again(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = found(filled())
    with monkeypatch.context() as patched:
        patched.setattr(graph, "_compute_graph_steps", lambda *_: pytest.fail("again"))
        assert found(filled()) == first
    kept = {file for file in empty_cache.rglob("*") if file.is_file()}
    changed = found(filled(changed=60))
    assert [place for place in range(SERIES) if changed[place] != first[place]] == [60]
    assert len({file for file in empty_cache.rglob("*") if file.is_file()} - kept) == 1


def test_a_damaged_cache_is_no_harm(empty_cache: Path) -> None:
    first = found(filled())
    for file in empty_cache.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xc1")
    assert found(filled()) == first


def test_a_benchmark_without_parameters_or_values_is_left_to_asv() -> None:
    scalar = Graph("x", {})
    for revision in range(6):
        scalar.add_data_point(revision, float(revision > 2) + 1)
    wanted = Graph("x", {})
    wanted.data_points, wanted.data_weights = scalar.data_points, scalar.data_weights
    wanted.n_series = scalar.n_series
    DETECT(wanted)
    assert found(scalar) == wanted.get_steps()
    empty = Graph("x", {})
    empty.add_data_point(0, None)
    assert found(empty) == []


def test_all_series_are_waited_for_once() -> None:
    made = filled()
    DETECT(made)
    asked: list[Graph] = []

    def original(of: Graph) -> Any:
        asked.append(of)
        return inspect.unwrap(Graph.get_steps)(of)

    get = steps.get(original)
    assert [get(made)[place] for place in range(SERIES)] == inspect.unwrap(Graph.get_steps)(made)
    assert len(asked) == 1


def test_the_points_of_a_graph_are_reduced_once() -> None:
    made = filled()
    original = inspect.unwrap(Graph.get_data)
    asked: list[Graph] = []

    def counted(of: Graph) -> Any:
        asked.append(of)
        return original(of)

    get = steps.data(counted)
    assert get(made) == get(made) == original(made)
    assert len(asked) == 1
    made.add_data_point(12, [1.0] * SERIES, [1.0] * SERIES)
    assert get(made) == original(made)
    assert len(asked) == 2
