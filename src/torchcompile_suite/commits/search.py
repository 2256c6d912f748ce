"""Which commit to measure next, as an index into a list of commits, oldest first."""

from __future__ import annotations

from collections.abc import Container


def next_place(good: int, bad: int, skipped: Container[int]) -> int | None:
    """The index nearest to the middle between ``good`` and ``bad`` that is not ``skipped``.

    None if there is none: then the first bad commit is ``bad``, or a skipped one before it.
    """
    middle = (good + bad) / 2
    inside = [place for place in range(good + 1, bad) if place not in skipped]
    return min(inside, key=lambda place: (abs(place - middle), place), default=None)
