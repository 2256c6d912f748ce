"""Between-run drift: how much the time of the same work differs between measurements."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import partial
from typing import NamedTuple

from .. import statistics
from .quantities import EAGER_CALL, DriftReference, Side


class Drift(NamedTuple):
    """Variance of the log of a time between measurements, and its degrees of freedom.

    NaN and 0 where no work was measured twice.
    """

    variance: float
    degrees: float


NO_DRIFT = Drift(0.0, math.inf)


def drift_between(sides: Sequence[Side], reference: DriftReference = EAGER_CALL) -> Drift:
    """The drift between measurements of the same work, within each release.

    It is what the means of these measurements differ by, beyond what their launches explain.
    """
    parts = [side.kept(reference, partial(_within, side, reference)) for side in sides]
    degrees = sum(part.degrees for part in parts)
    if not degrees:
        return Drift(math.nan, 0.0)
    squares = math.fsum(part.variance * part.degrees for part in parts if part.degrees)
    return Drift(max(0.0, squares / degrees), degrees)


def _within(side: Side, reference: DriftReference) -> Drift:
    """The drift within one release. The estimate of its variance may be below 0."""
    groups: dict[Hashable, list[list[float]]] = defaultdict(list)
    for cell, measurement in side.cells.items():
        times_s = side.reference_values(cell, reference)
        if len(times_s) > 1:
            groups[reference.key(measurement)].append(times_s)
    squares, degrees = 0.0, 0
    for group in groups.values():
        if len(group) < 2:
            continue
        means = [statistics.power(statistics.log_mean(times_s)) for times_s in group]
        explained = math.fsum(
            statistics.log_variance(times_s) / len(times_s) for times_s in group
        ) / len(group)
        squares += (len(group) - 1) * (statistics.log_variance(means) - explained)
        degrees += len(group) - 1
    return Drift(squares / degrees, float(degrees)) if degrees else Drift(math.nan, 0.0)
