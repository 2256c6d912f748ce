"""One line of a journal or segment as a measurement, which has every figure that it claims."""

from __future__ import annotations

import msgspec

from ..fields import SCHEMA
from ..measurement import Measurement
from . import regular

# No call is as short. A quotient with a shorter time may not be a number.
_SHORTEST_S = 1e-12


class _Schema(msgspec.Struct):
    schema: int = 0


def decode(line: bytes) -> Measurement:
    """The measurement of one line. Raises ValueError with a message of one line."""
    schema = regular.decoded(line, _Schema, "not a measurement").schema
    if schema > SCHEMA:
        raise ValueError(
            f"written by a newer version of the suite (schema {schema}, this one reads up to "
            f"{SCHEMA}); update torchcompile-suite"
        )
    measurement = regular.decoded(line, Measurement, "not a measurement")
    # Figures are computed of failed cells, too: of what they measured before they failed.
    pairs = (pair for launch in measurement.launches for pair in launch.pairs_s)
    if any(min(pair) < _SHORTEST_S for pair in pairs):
        raise ValueError("not a measurement: a call takes no time")
    if measurement.outcome.ok and not _whole(measurement):
        raise ValueError(
            "not a measurement: its outcome is ok, but it lacks launches or timings, or counts"
        )
    return measurement


def _whole(measurement: Measurement) -> bool:
    """Whether every figure can be computed: some launch counts, and all of them have times."""
    launches = measurement.launches
    if measurement.cell.target:
        return measurement.generated is not None
    if not measurement.cell.timed:
        return any(launch.attribution is not None for launch in launches)
    return any(not launch.disturbed for launch in launches) and all(
        launch.pairs_s and launch.warm_up_s for launch in launches
    )
