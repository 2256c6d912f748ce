"""The memory of this process over many calls: `watch`, and what Dynamo does about their shapes."""

from __future__ import annotations

import math
import time
from typing import Any

from ..measurement import Growth
from ..request import Plan
from .device import Device
from .subject import Call, Subject

SAMPLES = 50


class Captures:
    """What Dynamo captures, from the creation on; for a process that compiles."""

    def __init__(self) -> None:
        """Imports the compiler."""
        from .inspect import versions

        self._versions = versions
        self._said = versions.watch_limit()

    def fields(self) -> dict[str, Any]:
        """Of `Growth`."""
        return {
            "graphs": self._versions.captures(),
            "limit": self._versions.recompile_limit(),
            "at_limit": self._said[0] if self._said else "",
        }


def watch(
    subject: Subject, call: Call, on: Device, plan: Plan, captures: Captures | None
) -> Growth:
    """Make the plan's calls, as far as its time allows, and look at the memory in between.

    Samples are evenly spaced in calls or in time, whichever limit is reached first: short calls end
    with their number, and long ones with the time. ``captures``: None for eager. A garbage
    collection runs when Python wants it, as in a user's process.
    """
    wanted = math.ceil(plan.calls / subject.module_calls)
    step, step_s = math.ceil(wanted / SAMPLES), plan.calls_limit_s / SAMPLES
    start = time.perf_counter()
    seen = [(0, _resident_bytes(), on.held_bytes())]
    made, spent_s = 0, 0.0
    while made < wanted and spent_s < plan.calls_limit_s:
        place, until_s = min(wanted, made + step), spent_s + step_s
        while made < place and spent_s < until_s:
            call()
            made += 1
            spent_s = time.perf_counter() - start
        on.synchronize()
        seen.append((made * subject.module_calls, _resident_bytes(), on.held_bytes()))
    held = [each for _, _, each in seen if each is not None]
    return Growth(
        calls=[calls for calls, _, _ in seen],
        resident_bytes=[resident for _, resident, _ in seen],
        allocated_bytes=[allocated for allocated, _ in held],
        reserved_bytes=[reserved for _, reserved in held],
        shapes=subject.shapes,
        **(captures.fields() if captures else {}),
    )


def _resident_bytes() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)
