"""The committed evidence is there, readable, and says what docs/method.md says of it."""

from __future__ import annotations

import numpy as np
import pytest
from evidence import coverage, draws, pools

from torchcompile_suite.cell import Cell, Launch
from torchcompile_suite.findings import change


def forked(name: str) -> list[Launch]:
    return [one for one in pools.pool(name) if one.process == "forked"]


@pytest.mark.parametrize("name", pools.CELLS)
def test_each_pool_holds_sixty_launches_of_its_cell(name: str) -> None:
    launches = forked(name)
    assert len(launches) >= 60
    assert all(one.outcome.ok and one.kind == "warm" for one in launches)


@pytest.mark.parametrize("name", pools.CELLS)
def test_our_interval_holds_the_pools_value(name: str) -> None:
    """A thousand draws have a standard error of 0.7 %: three of them beside 93-97 %."""
    random = np.random.default_rng(3)
    pool = coverage.Pool(forked(name), random)
    held = 0
    for _ in range(1000):
        drawn = random.integers(0, len(pool.x), 12)
        drawn = pool.stopped(coverage.corrected, drawn, random)
        held += pool.holds(coverage.corrected, drawn, random)
    assert 0.91 <= held / 1000 <= 0.99


def test_the_same_launches_compared_with_themselves_raise_no_alarm() -> None:
    random = np.random.default_rng(4)
    sides = [
        [draws.measurement(forked(name), Cell(name, 1, "default"), random) for name in pools.CELLS]
        for _ in range(2)
    ]
    comparison = change.compare("pools", change.Side("a", sides[0]), change.Side("b", sides[1]))
    assert comparison.compared == len(pools.CELLS)
    assert not comparison.regressions
