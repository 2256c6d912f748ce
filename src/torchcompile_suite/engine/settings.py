"""Settings of a measurement, the environment variables that carry them, and limits of the suite.

The user sets the variables (``TORCHCOMPILE_SUITE_...``), and commands set them for an ``asv run``
that they start.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from ..errors import SuiteError
from ..request import Plan

PREFIX = "TORCHCOMPILE_SUITE_"
LAUNCHES_VARIABLE = PREFIX + "LAUNCHES"
LIMIT_VARIABLE = PREFIX + "LAUNCH_LIMIT_S"
PRECISION_VARIABLE = PREFIX + "PRECISION"
BUDGET_VARIABLE = PREFIX + "BUDGET_S"
REPEATS_VARIABLE = PREFIX + "REPEATS"

# The target half-width of the ratio's interval, relative to the ratio. Launches stop when it is
# reached.
PRECISION = 0.03
# Seconds that a cell may take, and the largest number of launches. Half the interval needs four
# times the launches. A machine that needs more than a dozen has a fault that should be found first.
BUDGET_S = 180.0
MOST_LAUNCHES = 12
# Launches of a cell whose calls are divided.
DIVIDED_LAUNCHES = 3
# The largest number of disturbed launches that are repeated. A machine that is always disturbed
# must come to an end, too.
MOST_REPEATS = 3
# A launch that takes longer hangs, or compiles something that nobody would wait for.
LAUNCH_LIMIT_S = 900.0
# Free disk space that a launch needs for its compiler cache: C++ sources, objects, precompiled
# headers.
NEEDED_FOR_CACHE_BYTES = 1 << 30
# Free disk space for the raw records: enough for some hundred records.
NEEDED_FOR_RECORD_BYTES = 4 << 20
# An upper limit refuses infinity, and NaN too.
_LARGEST = 10**9


class Settings(NamedTuple):
    """How cells are measured.

    - ``launches``: the number of launches. None: ``precision`` (relative half-width of the ratio's
      interval) and ``budget_s`` (seconds for each cell) decide.
    - ``launch_limit_s``: a launch that takes longer is ended.
    - ``repeats``: the largest number of disturbed launches of a cell that are repeated.
    """

    launches: int | None = None
    precision: float = PRECISION
    budget_s: float = BUDGET_S
    launch_limit_s: float = LAUNCH_LIMIT_S
    repeats: int = MOST_REPEATS
    plan: Plan = Plan()

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the variables that the commands and the user set.

        Raises SuiteError, which names the variable with a wrong value.
        """
        return cls(
            launches=_read(LAUNCHES_VARIABLE, int, 1, None),
            precision=_read(PRECISION_VARIABLE, float, 0.001, PRECISION),
            budget_s=_read(BUDGET_VARIABLE, float, 0, BUDGET_S),
            launch_limit_s=_read(LIMIT_VARIABLE, float, 1, LAUNCH_LIMIT_S),
            repeats=_read(REPEATS_VARIABLE, int, 0, MOST_REPEATS),
        )


def _read(variable: str, kind: type, least: float, default: Any) -> Any:
    """The variable's value as a number of at least ``least``; the default where it is not set."""
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        return msgspec.convert(text, Annotated[kind, Meta(ge=least, le=_LARGEST)], strict=False)
    except msgspec.ValidationError:
        what = "whole number" if kind is int else "number"
        raise SuiteError(
            f"{variable}={text!r} must be a {what} from {least:g} to {_LARGEST:g}"
        ) from None
