"""Whether compiling pays in a test: launches in turns, and what their interval can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..analysis.summary import Row

# What a test does if the interval cannot tell.
CHOICES = ("pass", "fail")


def measured(module: Any, inputs: Any, options: Mapping[str, Any]) -> Row:
    """The figures of the module in eager and compiled (`trial.api.compare`). Raises TrialError."""
    from ..trial import api

    return api.figures(api.compare(module, inputs, **options))


def verdict(row: Row, most: float) -> bool | None:
    """Whether compiled code takes at most that share of eager's time, with 95 % confidence.

    None if the interval cannot tell: it has the share inside, or the machine is too busy.
    """
    if row.ratio is None or not row.ratio.known:
        return None if _unclear(row) else False
    if row.ratio.high <= most:
        return True
    return False if row.ratio.low > most else None


def _unclear(row: Row) -> bool:
    from ..measurement import TOO_BUSY

    return row.outcome.ok or TOO_BUSY in row.outcome.reason


def told(name: str, row: Row, most: float, found: bool | None) -> str:
    """The verdict in one line, with the interval or the reason why there is none."""
    if row.ratio is None:
        if found is False:
            return f"{name} cannot be measured: {row.outcome}"
        figures = str(row.outcome)
    else:
        figures = f"compiled over eager {row.ratio:.3f} [95 %], at most {most:.3g} is asked for"
    if found is None:
        more = "a larger budget_s or a quieter machine may tell"
        return f"{name}: cannot tell whether compiling pays: {figures}; {more}"
    return f"{name}: compiling {'pays' if found else 'does not pay'}: {figures}"
