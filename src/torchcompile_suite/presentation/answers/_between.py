"""Figures of two cells over each other, and figures with a unit."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis import statistics
from ...analysis.claims.evidence import Evidence, Missing
from ...analysis.statistics import Interval
from ...results.records import Record


class Between:
    """Compares cells of one release on one machine that were measured one after the other."""

    def __init__(self, records: Sequence[Record]) -> None:
        """``records``: all of that release and machine. The drift is known from all of them."""
        self._evidence = Evidence((record.measurement for record in records), "")

    def over(self, one: Interval | None, other: Interval | None) -> Interval | None:
        """One time over the other; None if one of them is missing.

        The interval includes the drift of the machine between two measurements, if it is known:
        that needs work that several cells have timed.
        """
        if one is None or other is None:
            return None
        try:
            return self._evidence.over(one, other)
        except Missing:
            return statistics.quotient(one, other)


def gains(ratio: Interval | None) -> bool:
    """Whether a ratio with its whole interval lies below 1."""
    return ratio is not None and ratio.high < 1


def time(interval: Interval | None, unit_s: float) -> str:
    """A time in that unit (1e-3 for milliseconds), in three digits; a dash without a time."""
    return "-" if interval is None else f"{interval.per(unit_s).value:.3g}"


def with_interval(interval: Interval, unit_s: float) -> str:
    """The same with its interval."""
    return f"{interval.per(unit_s):.3g}"
