"""Bisection: which commit is measured next, what the values mean, where the search ends."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from evidence.wheels import Repository
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.cell import Cell
from torchcompile_suite.cli.bisect import as_json
from torchcompile_suite.commits import judge, measuring, overlay
from torchcompile_suite.commits.bisection import (
    AT_THE_END,
    MOST_OF_STEP,
    Step,
    bisect,
    next_place,
)
from torchcompile_suite.commits.clone import Clone
from torchcompile_suite.commits.judge import Side
from torchcompile_suite.engine import launches
from torchcompile_suite.engine.journal import Line
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host.files import append_line
from torchcompile_suite.measurement import METHOD, OK, Launch

from ..schemas import validated


class Scripted:
    """Commits whose values are drawn around their true costs."""

    def __init__(
        self, costs: dict[str, float], noise: float, broken: set[str], seed: int = 0
    ) -> None:
        self.costs, self.noise, self.broken = costs, noise, broken
        self.random = random.Random(seed)
        self.found: dict[str, list[float]] = {}
        self.refused: dict[str, str] = {}

    def values(self, commit: str) -> list[float]:
        return self.found.get(commit, [])

    def measure(self, commit: str, count: int) -> None:
        if commit in self.broken:
            self.refused[commit] = "it does not import"
            return
        mine = self.found.setdefault(commit, [])
        while len(mine) < count:
            mine.append(self.costs[commit] * math.exp(self.random.gauss(0, self.noise)))


def test_launches_that_an_older_suite_kept_do_not_count(tmp_path: Path) -> None:
    """An older suite named the commit in another field."""
    kept = tmp_path / "kept.jsonl"
    for method, mode_s in ((1, 0.9), (METHOD, 0.8)):
        launch = Launch("warm", OK, pairs_s=[(1.0, mode_s)], method=method)
        append_line(kept, msgspec.json.encode(Line(commit="c0ffee", launch=launch)))
    clone = Clone(Repository(tmp_path / "clone").folder)
    search = measuring.Measuring(clone, Cell("resnet18", 1, "default"), "ratio", tmp_path, kept)
    assert search.values("c0ffee") == [pytest.approx(0.8)]


def replaced(monkeypatch: pytest.MonkeyPatch, make: Callable[[str, Path], Launch]) -> None:
    """Let ``make`` make a launch of the commit that was overlaid last, with its cache."""
    overlaid: list[str] = []
    monkeypatch.setattr(overlay, "install", lambda _, commit, *__, **___: overlaid.append(commit))
    monkeypatch.setattr(
        launches, "of_series", lambda _, __, cache, *, observe: make(overlaid[-1], cache)
    )


def test_a_commit_is_measured_cold_then_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit has a cache of its own, also after a search before this one."""
    (tmp_path / "caches" / "of-a-search-before").mkdir(parents=True)
    seen: list[tuple[Path, list[str]]] = []

    def make(_: str, cache: Path) -> Launch:
        cache.mkdir(exist_ok=True)
        seen.append((cache, [one.name for one in cache.iterdir()]))
        (cache / "code").touch()
        return Launch("warm", OK, pairs_s=[(1.0, 0.8), (1.0, 0.8)], method=METHOD)

    replaced(monkeypatch, make)
    clone = Clone(Repository(tmp_path / "clone").folder)
    cell = Cell("resnet18", 1, "default")
    search = measuring.Measuring(clone, cell, "ratio", tmp_path, tmp_path / "kept.jsonl")
    search.measure("c0ffee", 2)
    assert search.values("c0ffee") == [pytest.approx(0.8)] * 2
    (first, empty), (second, code) = seen
    assert (first, empty, code) == (second, [], ["code"])
    assert not (tmp_path / "caches" / "of-a-search-before").exists()


def test_the_json_of_a_search_has_its_launches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"good": 0.8, "bad": 1.2}

    def make(commit: str, _: Path) -> Launch:
        return Launch("warm", OK, pairs_s=[(1.0, times[commit])], method=METHOD)

    replaced(monkeypatch, make)
    kept = tmp_path / "kept.jsonl"
    for commit, mode_s in [("good", 0.8), ("bad", 1.2)] * 3:
        launch = Launch("warm", OK, pairs_s=[(1.0, mode_s)], method=METHOD)
        append_line(kept, msgspec.json.encode(Line(release=commit, launch=launch)))
    cell = Cell("resnet18", 1, "default")
    clone = Clone(Repository(tmp_path / "clone").folder)
    search = measuring.Measuring(clone, cell, "ratio", tmp_path, kept)
    found = bisect(["good", "bad"], search)
    content = validated("bisect", as_json(found, cell, "ratio", search))
    assert (content["before"], content["suspects"]) == ("good", ["bad"])
    assert content["factor"][0] == pytest.approx(1.5)
    assert [step["side"] for step in content["steps"]] == ["good", "bad"]
    assert len(content["launches"]["bad"]) == 3 + AT_THE_END
    assert content["again"][0] == pytest.approx(1.5)


@given(st.data(), st.integers(2, 40))
def test_the_next_place_is_inside_and_not_skipped(data: st.DataObject, distance: int) -> None:
    skipped = data.draw(st.sets(st.integers(1, distance)))
    place = next_place(0, distance, skipped)
    free = set(range(1, distance)) - skipped
    assert place is None if not free else place in free
    if place is not None:
        nearest = min(abs(each - distance / 2) for each in free)
        assert abs(place - distance / 2) == nearest


@given(st.data(), st.integers(1, 60), st.sampled_from([1.3, 0.7]))
def test_it_finds_the_first_bad_commit(data: st.DataObject, count: int, factor: float) -> None:
    """Also if commits cannot be measured: they are suspects too, and the fault is the last one."""
    commits = [f"commit{number}" for number in range(count + 1)]
    fault = data.draw(st.integers(1, count))
    broken = data.draw(st.sets(st.sampled_from(commits[1:-1] or ["none"])))
    costs = {each: 1.0 if place < fault else factor for place, each in enumerate(commits)}
    heard: list[Step] = []
    found = bisect(commits, Scripted(costs, 0.005, broken), heard.append)
    assert heard == found.steps
    assert commits[fault] in found.suspects
    assert set(found.suspects[:-1]) <= broken
    assert costs[found.suspects[-1]] == factor
    assert costs[found.before] == 1.0
    assert found.factor.value == pytest.approx(factor, rel=0.05)
    assert all(step.reason for step in found.steps if step.side is Side.UNKNOWN)
    # Each step halves the distance: log2(count) steps, the two ends, and the broken commits.
    measured = [step for step in found.steps if step.side is not Side.UNKNOWN]
    assert len(measured) <= 2 + math.ceil(math.log2(count + 1)) + len(broken)


def test_noise_takes_more_launches_and_not_the_wrong_commit() -> None:
    commits = [f"commit{number}" for number in range(33)]
    right, launches = 0, 0
    for seed in range(200):
        fault = random.Random(seed).randint(1, 32)
        costs = {each: 1.0 if place < fault else 1.1 for place, each in enumerate(commits)}
        measures = Scripted(costs, 0.03, set(), seed)
        right += bisect(commits, measures).suspects == [commits[fault]]
        launches += sum(map(len, measures.found.values()))
    assert right / 200 >= 0.95
    assert launches / 200 < 7 * MOST_OF_STEP


def test_an_undecided_suspect_is_measured_again() -> None:
    """With noise of half a fault, twenty launches are sometimes too few; forty are enough."""
    commits = [f"commit{number}" for number in range(17)]
    right = 0
    for seed in range(60):
        fault = random.Random(seed).randint(1, 16)
        costs = {each: 1.0 if place < fault else 1.28 for place, each in enumerate(commits)}
        suspects = bisect(commits, Scripted(costs, 0.13, set(), seed)).suspects
        assert commits[fault] in suspects
        right += suspects == [commits[fault]]
    assert right / 60 >= 0.95


def test_a_machine_that_became_slower_is_not_confirmed() -> None:
    """Until the end each commit looks as slow as the hour in which it was measured."""

    class Slower(Scripted):
        def values(self, commit: str) -> list[float]:
            return [
                value * (1.2 if place < 3 and commit == "bad" else 1.0)
                for place, value in enumerate(super().values(commit))
            ]

    found = bisect(["good", "bad"], Slower({"good": 1.0, "bad": 1.0}, 0.003, set()))
    assert found.suspects == ["bad"]
    assert not found.confirmed
    assert bisect(["good", "bad"], Scripted({"good": 1.0, "bad": 1.2}, 0.003, set())).confirmed


def test_ends_that_do_not_differ_are_refused() -> None:
    costs = {"good": 1.0, "middle": 1.0, "bad": 1.0}
    with pytest.raises(SuiteError, match=r"bad over good is \d\.\d{3} \[.*too little"):
        bisect(list(costs), Scripted(costs, 0.02, set()))


def test_an_end_that_cannot_be_measured_is_named() -> None:
    costs = {"good": 1.0, "bad": 2.0}
    with pytest.raises(SuiteError, match="bad cannot be measured: it does not import"):
        bisect(list(costs), Scripted(costs, 0.02, {"bad"}))


def test_a_metric_without_values_is_named() -> None:
    class Nothing(Scripted):
        def measure(self, commit: str, count: int) -> None:
            pass

    with pytest.raises(SuiteError, match="another --metric"):
        bisect(["good", "bad"], Nothing({}, 0, set()))


def test_a_commit_between_good_and_bad_is_skipped_or_decided() -> None:
    """A commit with half a fault is neither good nor bad, and the search may say so."""
    costs = {"good": 1.0, "half": math.sqrt(1.2), "bad": 1.2}
    found = bisect(list(costs), Scripted(costs, 0.01, set()))
    half = next(step for step in found.steps if step.commit == "half")
    suspects = {Side.GOOD: ["bad"], Side.BAD: ["half"], Side.UNKNOWN: ["half", "bad"]}
    assert found.suspects == suspects[half.side]
    assert half.side is not Side.UNKNOWN or "cannot tell" in half.reason


@given(st.floats(0.5, 2), st.floats(0.01, 0.2))
def test_sides_do_not_depend_on_the_unit(unit: float, size: float) -> None:
    good, bad = [1.0, 1.001, 0.999], [1 + size, 1.001 + size, 0.999 + size]
    for values, side in ((good, Side.GOOD), (bad, Side.BAD)):
        samples = [[unit * each for each in sample] for sample in (values, good, bad)]
        found, first, second = samples
        assert judge.side(found, first, second, samples) is side


def test_one_launch_of_each_decides_nothing() -> None:
    assert judge.side([1.0], [1.0], [2.0], [[1.0], [1.0], [2.0]]) is Side.UNKNOWN
    assert not judge.differ([1.0], [2.0], [[1.0], [2.0]])
