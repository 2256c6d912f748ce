"""The figures of one launch.

The functions that take a launch also take a condensed one (`CondensedLaunch`).

All times are seconds. ``pairs_s`` holds ``(eager, mode)`` couples; ``warm_up_s`` holds the calls in
the mode from the first one on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, TypeVar

from msgspec import Struct

from ...measurement import Launch

_T = TypeVar("_T")
STEADY_WINDOW = 5
STEADY_TOLERANCE = 0.03
# The number of calls that a naive benchmark may average.
MIXED_CALLS = 10


class Figures(Struct, frozen=True):
    """What the samples of a launch gave. Each field has a function, which takes a launch.

    - ``ratio`` (`ratio_of`): the `launch_ratio`.
    - ``latency_s`` (`latency_of`), ``eager_latency_s`` (`eager_latency_of`): the `launch_latency`
      and the `launch_eager_latency`, in seconds.
    - ``compile_cost_s`` (`compile_cost_of`): the `compile_cost`, in seconds.
    - ``calls_until_steady`` (`calls_until_steady_of`): the `calls_until_steady`.
    - ``seconds_until_steady`` (`seconds_until_steady_of`): the total seconds of these calls.
    - ``stayed_steady`` (`stayed_steady`): whether the warm-up ended with steady calls, and those of
      the turns were no faster.
    - ``first_call_s`` (`first_call_of`): seconds of the first call in the mode.
    - ``warm_up_mixed_ratio`` (`warm_up_mixed_ratio`): the mode/eager ratio of a benchmark that
      averages the first calls, compiling included.
    - ``single_call_s`` (`single_call_of`): seconds of a call that is waited for, in eager and in
      the mode, the medians over pairs. None where no such calls were timed: on a CPU each call is
      waited for.
    """

    ratio: float
    latency_s: float
    eager_latency_s: float
    compile_cost_s: float
    calls_until_steady: int
    seconds_until_steady: float
    stayed_steady: bool
    first_call_s: float
    warm_up_mixed_ratio: float
    single_call_s: tuple[float, float] | None = None


class CondensedLaunch(Launch, frozen=True, forbid_unknown_fields=True):
    """A launch without ``pairs_s``, ``latency_s`` and ``warm_up_s``, but with their figures.

    ``figures`` is None where nothing was timed.
    """

    figures: Figures | None = None

    @property
    def timed(self) -> bool:
        """Whether pairs were timed."""
        return self.figures is not None


def is_steady(calls_s: Sequence[float]) -> bool:
    """Whether the last calls no longer get faster or slower.

    Compares the medians of the last two windows of `STEADY_WINDOW` calls each. A fixed number of
    warm-up calls is too many for some models and too few for others: CUDA graphs are recorded on
    later calls, and clocks and allocators need time to settle.
    """
    if len(calls_s) < 2 * STEADY_WINDOW:
        return False
    before = median(calls_s[-2 * STEADY_WINDOW : -STEADY_WINDOW])
    after = median(calls_s[-STEADY_WINDOW:])
    return abs(after - before) <= STEADY_TOLERANCE * before


def steady_call(calls_s: Sequence[float]) -> float:
    """Seconds of a steady call: the median of the last two windows of calls that have settled."""
    return median(calls_s[-2 * STEADY_WINDOW :])


def launch_ratio(pairs_s: Sequence[tuple[float, float]]) -> float:
    """The mode/eager time ratio of one launch: the median over pairs, on the log scale.

    The two times of a pair are measured one after the other, so a drift of the machine's speed
    cancels within the pair.
    """
    return math.exp(median(math.log(mode / eager) for eager, mode in pairs_s))


def launch_error(pairs_s: Sequence[tuple[float, float]]) -> float:
    """The standard error of the log of `launch_ratio`.

    Of a median, from the median absolute deviation, as if the logs were normal: a few slow pairs
    change neither.
    """
    logs = [math.log(mode / eager) for eager, mode in pairs_s]
    middle = median(logs)
    spread = 1.4826 * median(abs(each - middle) for each in logs)
    return math.sqrt(math.pi / 2 / len(logs)) * spread


def launch_latency(pairs_s: Sequence[tuple[float, float]]) -> float:
    """Seconds a call in the mode, for one launch: the median over its pairs."""
    return median(mode for _, mode in pairs_s)


def launch_eager_latency(pairs_s: Sequence[tuple[float, float]]) -> float:
    """Seconds a call in eager, for one launch: the median over its pairs."""
    return median(eager for eager, _ in pairs_s)


def _after_first(warm_up_s: Sequence[float]) -> Sequence[float]:
    """The calls that may be steady: the first one compiles, unless it is the only one."""
    return warm_up_s[1:] or warm_up_s


def compile_cost(
    warm_up_s: Sequence[float], compiler_import_s: float = 0.0, turns_s: float = math.inf
) -> float:
    """Seconds lost to compiling: the compiler's import, and the calls that compiled something.

    ``turns_s``: seconds a call in the turns that followed. A call of more than twice the time of a
    steady call has compiled, recompiled or recorded a CUDA graph. This sum is what the user has to
    earn back. The first call's time alone would miss the cost of later calls; the sum of all calls
    would include the drift of a busy machine.
    """
    # The warm-up may have ended with calls that compiled: the turns are then faster.
    steady_s = min(steady_call(_after_first(warm_up_s)), turns_s)
    calls_s = math.fsum(call_s - steady_s for call_s in warm_up_s if call_s > 2 * steady_s)
    return compiler_import_s + calls_s


def calls_until_steady(warm_up_s: Sequence[float]) -> int:
    """The number of calls before the first window that is as fast as the last ones.

    Uses the median of each window, so one slow call among steady ones does not count. A first call
    that compiles counts as one call.
    """
    limit = steady_call(_after_first(warm_up_s)) * (1 + STEADY_TOLERANCE)
    for start in range(len(warm_up_s)):
        window = warm_up_s[start : start + STEADY_WINDOW]
        if median(window) <= limit and window[0] <= 2 * limit:
            return start
    return len(warm_up_s)


# The figures of a launch by the field of `Figures`.
_OF: dict[str, Callable[[Launch], Any]] = {}


def _figure(name: str, of_samples: Callable[[Launch], _T]) -> Callable[[Launch], _T]:
    """The function that gives a field of `Figures`: of a condensed launch the one that was kept."""

    def of(launch: Launch) -> _T:
        known = launch.figures if isinstance(launch, CondensedLaunch) else None
        figure: _T = of_samples(launch) if known is None else getattr(known, name)
        return figure

    _OF[name] = of
    return of


def _pairs(launch: Launch) -> Sequence[tuple[float, float]]:
    """Seconds a call in eager and in the mode: of pairs, or of calls that were divided."""
    divided = launch.attribution
    return [(divided.eager.call_s, divided.mode.call_s)] if divided else launch.pairs_s


def _mixed_ratio(launch: Launch) -> float:
    calls_s = launch.warm_up_s[:MIXED_CALLS]
    return math.fsum(calls_s) / len(calls_s) / launch_eager_latency(launch.pairs_s)


def _waited_for(launch: Launch) -> float:
    """Seconds of a call in the turns that is waited for, as those of the warm-up are. On an
    accelerator the calls of a pair follow one another, and take less.
    """
    turns_s = launch.latency_s or launch.pairs_s
    return launch_latency(turns_s) if turns_s else math.inf


def _stayed_steady(launch: Launch) -> bool:
    if not launch.steady or not launch.pairs_s:
        return False
    end_s = steady_call(_after_first(launch.warm_up_s))
    return _waited_for(launch) >= end_s * (1 - STEADY_TOLERANCE)


def _single_call(launch: Launch) -> tuple[float, float] | None:
    if not launch.latency_s:
        return None
    return launch_eager_latency(launch.latency_s), launch_latency(launch.latency_s)


ratio_of = _figure("ratio", lambda launch: launch_ratio(_pairs(launch)))
latency_of = _figure("latency_s", lambda launch: launch_latency(_pairs(launch)))
eager_latency_of = _figure("eager_latency_s", lambda launch: launch_eager_latency(_pairs(launch)))
compile_cost_of = _figure(
    "compile_cost_s",
    lambda launch: compile_cost(launch.warm_up_s, launch.compiler_import_s, _waited_for(launch)),
)
calls_until_steady_of = _figure(
    "calls_until_steady", lambda launch: calls_until_steady(launch.warm_up_s)
)
seconds_until_steady_of = _figure(
    "seconds_until_steady",
    lambda launch: math.fsum(launch.warm_up_s[: calls_until_steady(launch.warm_up_s)]),
)
stayed_steady = _figure("stayed_steady", _stayed_steady)
first_call_of = _figure("first_call_s", lambda launch: launch.warm_up_s[0])
warm_up_mixed_ratio = _figure("warm_up_mixed_ratio", _mixed_ratio)
single_call_of = _figure("single_call_s", _single_call)


def figures(launch: Launch) -> Figures:
    """All figures of a launch that was timed."""
    return Figures(**{name: of(launch) for name, of in _OF.items()})
