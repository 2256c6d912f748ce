"""Which commit to measure next. Pure: places in a list of commits, oldest first."""

from __future__ import annotations

from collections.abc import Container


def next_place(good: int, bad: int, skipped: Container[int]) -> int | None:
    """The place nearest to the middle between a good and a bad one that can be measured.

    None where there is none: then the first bad one is ``bad``, or one of those skipped between.
    """
    middle = (good + bad) / 2
    inside = [place for place in range(good + 1, bad) if place not in skipped]
    return min(inside, key=lambda place: (abs(place - middle), place), default=None)
