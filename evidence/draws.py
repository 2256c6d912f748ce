"""Measurements drawn from pools, as a session of the suite would have made them."""

from __future__ import annotations

import msgspec
import numpy as np

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import settings
from torchcompile_suite.measurement import OK, Launch, Measurement


def measurement(
    launches: list[Launch],
    cell: Cell,
    random: np.random.Generator,
    in_a_row: bool = False,
    precision: float = settings.PRECISION,
) -> Measurement:
    """Launches drawn until the stopping rule ends. The first one stands for the cold launch.

    At random they stand for the rounds of a series, so that two drawn measurements are compared
    round by round.
    ``in_a_row`` takes launches that followed each other in the pool, from a random one on: those of
    a run of its own, whose times are not compared.
    """
    if in_a_row:
        order = (random.integers(0, len(launches)) + np.arange(settings.MOST_LAUNCHES)) % len(
            launches
        )
    else:
        order = random.integers(0, len(launches), settings.MOST_LAUNCHES)
    drawn: list[Launch] = []
    for index in order:
        kind = "warm" if drawn else "cold"
        number = 0 if in_a_row else len(drawn) + 1
        launch = msgspec.structs.replace(launches[index], kind=kind, series="pools", round=number)
        drawn.append(launch)
        if statistics.precise(drawn, precision):
            break
    stopped = "precise" if statistics.precise(drawn, precision) else "budget"
    return Measurement(cell, OK, drawn, "2026-01-01T00:00:00+00:00", 0.0, stopped)  # type: ignore[arg-type]


def as_eager(launches: list[Launch]) -> list[Launch]:
    """The eager cell that these launches measured too: eager times on both sides of each pair.

    A pair is an even sample of a launch and the odd sample after it. So both are real, and they
    differ.
    """
    made = []
    for launch in launches:
        eager_s = [pair[0] for pair in launch.pairs_s]
        pairs_s = list(zip(eager_s[::2], eager_s[1::2], strict=False))
        made.append(msgspec.structs.replace(launch, pairs_s=pairs_s))
    return made
