"""The figures of one launch and of all launches of a measurement, and which launches count.

The functions that take a launch also take a condensed one (`CondensedLaunch`).

All times are seconds. ``pairs_s`` holds ``(eager, mode)`` couples; ``warm_up_s`` holds the calls in
the mode from the first one on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import not_
from statistics import median, median_low
from typing import Any, TypeVar

from msgspec import Struct

from ...conditions import DeviceState
from ...host import nvml
from ...host.probes import FAR, LEAST_NEAR, OFTEN_CROWDED
from ...measurement import Launch
from .intervals import T_LEVEL, T_LEVEL_LATER, Interval, geometric_interval, half_width

_T = TypeVar("_T")

STEADY_WINDOW = 5
STEADY_TOLERANCE = 0.03
# Places where each processor has a core of its own; "" in records from before schema 16. Which of
# such launches are near or far their hand-offs tell: each launch knows only its own.
APART = frozenset(["near", "far", ""])
# The number of calls that a naive benchmark may average.
MIXED_CALLS = 10
# The stopping rule looks first after this many launches. With fewer, t gives no useful interval.
FIRST_LOOK = 3
# A launch is repeated if others took more than these shares of the processors' time while it timed
# its pairs.
MOST_STEAL = 0.05
MOST_OTHERS = 0.10
# Limit for the time of the calibration loop, relative to the quietest one. In quiet hours the loop
# varies by some per cent; on a core that a neighbour shares it takes 40 % longer.
MOST_SLOWDOWN = 1.2
# Measured again, cold compiles of one cell differ by 7 % and warm ones by 10 %. A measurement has
# one cold launch, so its compile time has no interval: a smaller difference is not claimed.
COMPILE_MARGIN = 0.10
# Reasons for a lower clock of an accelerator that come from outside: heat, and a supply that fails.
# The cap of the power is none of them: a GPU reaches it by the measured work itself, on every run.
# Neither are clocks that somebody set: another launch would have them, too.
FAULTS = frozenset({nvml.SLOWDOWN, nvml.SOFTWARE_HEAT, nvml.HARDWARE_HEAT, nvml.POWER_BRAKE})


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


def compile_costs(launches: Iterable[Launch], kind: str, every: bool = False) -> list[float]:
    """The `compile_cost` in seconds of each undisturbed launch of that kind, "cold" or "warm".

    ``every``: of disturbed launches, too. Launches of whole processes have none: their pairs
    contain it.
    """
    return [
        compile_cost_of(launch)
        for launch in (launches if every else undisturbed(launches))
        if launch.kind == kind and launch.start is None
    ]


def calls_to_break_even(compile_cost_s: float, eager_s: float, ratio: float) -> float:
    """The number of calls after which compiling has paid for itself; infinite if it never does.

    ``ratio`` is mode over eager, from pairs. The difference of two latencies that were measured
    apart would mostly be the machine's drift.
    """
    gain_s = eager_s * (1 - ratio)
    return math.ceil(compile_cost_s / gain_s) if gain_s > 0 else math.inf


def undisturbed(launches: Iterable[Launch]) -> list[Launch]:
    """The launches that were not disturbed and repeated."""
    return [launch for launch in launches if not launch.disturbed]


def counted(launches: Iterable[Launch]) -> list[Launch]:
    """The launches whose pairs count: undisturbed ones, at the best place of the host.

    There the processors are near each other: the hand-off is at most `FAR` times the quickest one.
    If fewer than `FIRST_LOOK` launches were near, or if the place of one is not known, the place
    does not decide: all undisturbed launches count.
    """
    kept = undisturbed(launches)
    near, _ = _by_place(kept)
    return near if len(near) >= FIRST_LOOK else kept


def elsewhere(launches: Iterable[Launch]) -> list[Launch]:
    """Undisturbed launches that do not count: the host ran the processors at another place."""
    kept = undisturbed(launches)
    near, far = _by_place(kept)
    return far if len(near) >= FIRST_LOOK else []


def at_best_place(launches: Iterable[Launch], others: Iterable[Launch] = ()) -> int:
    """The number of undisturbed launches at the best place; of all if no place is known to be best.

    ``others``: launches of the same series, which may know a better place.
    """
    kept = undisturbed(launches)
    near, _ = _by_place([*kept, *undisturbed(others)])
    best = {id(one) for one in near}
    return sum(id(one) in best for one in kept) if best else len(kept)


def handoff_ns(launch: Launch) -> int | None:
    """Median nanoseconds of a hand-off between two processors; None if no probe was there.

    It is that of the pairs that count, and of all pairs in records from before schema 16.
    """
    host = launch.interference and launch.interference.host
    if not host:
        return None
    return median_low(host.handoff_ns) if host.counted_ns is None else host.counted_ns


def handoff(launches: Iterable[Launch]) -> float | None:
    """The median of `handoff_ns` over the launches that count; None if none is known."""
    known = [each for one in counted(launches) if (each := handoff_ns(one)) is not None]
    return median(known) if known else None


def _by_place(launches: Sequence[Launch]) -> tuple[list[Launch], list[Launch]]:
    """The timed launches with the processors near each other, and the others.

    Both are empty if the place of one is not known.
    """
    timed = [launch for launch in launches if launch.timed]
    handoffs = [handoff_ns(launch) for launch in timed]
    known = [each for each in handoffs if each is not None]
    if len(known) < len(timed):
        return [], []
    apart = [ns for one, ns in zip(timed, known, strict=True) if _place(one) in APART]
    limit_ns = FAR * min(apart, default=0)
    near = [_place(one) in APART and ns <= limit_ns for one, ns in zip(timed, known, strict=True)]
    return list(compress(timed, near)), list(compress(timed, map(not_, near)))


def _place(launch: Launch) -> str:
    host = launch.interference and launch.interference.host
    return host.place if host else ""


def of_the_host(launches: Iterable[Launch]) -> list[str]:
    """Sentences on what the probes of the host say: what was timed while it ran the processors
    elsewhere, with its ratio, and how often a neighbour was on a core.
    """
    kept = undisturbed(launches)
    near, far = _by_place(kept)
    said = []
    if near and far:
        (far_ns, far_ratio), (near_ns, near_ratio) = (
            (
                median(handoff_ns(one) or 0 for one in those),
                geometric_interval([ratio_of(one) for one in those]).value,
            )
            for those in (far, near)
        )
        counts = "only the latter count" if len(near) >= FIRST_LOOK else "all count"
        said.append(
            f"In {len(far)} of {len(kept)} launches a hand-off between two processors took "
            f"{far_ns:.0f} ns, and {near_ns:.0f} ns in the others: the host moved them. The ratio "
            f"is {far_ratio:.2f} in the former and {near_ratio:.2f} in the latter; {counts}."
        )
    here = [one for one in counted(kept) if one.timed]
    hosts = [one.interference.host for one in here if one.interference and one.interference.host]
    found = [(one.elsewhere_ratio, one.elsewhere) for one in hosts if one.elsewhere_ratio]
    mixed = any(one.place != "near" for one in hosts)
    if (pairs := sum(count for _, count in found)) >= LEAST_NEAR and not mixed:
        ratio = math.exp(math.fsum(n * math.log(each) for each, n in found) / pairs)
        of_near = geometric_interval([ratio_of(one) for one in here]).value
        said.append(
            f"The host also ran the two processors elsewhere, for {pairs} pairs of turns in "
            f"{len(found)} of {len(here)} launches. There the ratio is {ratio:.2f}; the figure is "
            f"that of the others, {of_near:.2f}."
        )
    crowded = [one.crowded for one in hosts if one.crowded is not None]
    if crowded and (share := median(crowded)) > OFTEN_CROWDED:
        said.append(
            "A neighbour, mostly another guest, computed on a core of these processors at "
            f"{share:.0%} of the readings ({min(crowded):.0%} to {max(crowded):.0%} in a launch). "
            "Meanwhile calls take longer, which makes the interval wider."
        )
    return said


def sequential_interval(values: Sequence[float]) -> Interval:
    """`geometric_interval` for launches that went on until the interval was narrow enough.

    It covers the true value in about 95 % of measurements, although the data decided when to stop.
    """
    return geometric_interval(values, T_LEVEL if len(values) <= FIRST_LOOK else T_LEVEL_LATER)


def precise(launches: Sequence[Launch], target: float) -> bool:
    """Whether the interval of the ratio reaches at most ``target`` (relative) to either side.

    This is the stopping rule. It is checked after each launch, and is never true before
    `FIRST_LOOK` launches count, nor before as many were near, if some were and others were not.
    """
    return at_best_place(launches) >= FIRST_LOOK and half_width(measured_ratio(launches)) <= target


def measured_ratio(launches: Sequence[Launch], sequential: bool = True) -> Interval:
    """The mode/eager time ratio of a measurement with its 95 % interval.

    ``sequential``: the launches went on until the ratio was precise enough.
    """
    ratios = [ratio_of(launch) for launch in counted(launches)]
    return sequential_interval(ratios) if sequential else geometric_interval(ratios)


def measured_eager(launches: Sequence[Launch]) -> Interval:
    """Seconds a call in eager, with the 95 % interval."""
    return geometric_interval([eager_latency_of(launch) for launch in counted(launches)])


def measured_single_calls(launches: Sequence[Launch]) -> tuple[Interval, Interval] | None:
    """Seconds of a call that is waited for, in eager and in the mode, with 95 % intervals.

    None where a launch has not timed any.
    """
    single = [single_call_of(launch) for launch in counted(launches)]
    known = [both for both in single if both is not None and min(both) > 0]
    if not known or len(known) != len(single):
        return None
    eager_s, mode_s = zip(*known, strict=True)
    return geometric_interval(eager_s), geometric_interval(mode_s)


def measured_latency(launches: Sequence[Launch]) -> Interval:
    """Seconds a call in the mode, with the 95 % interval."""
    return geometric_interval([latency_of(launch) for launch in counted(launches)])


def disturbed(launch: Launch, quiet_s: float | None = None) -> str:
    """Why the launch should be repeated, or the empty string.

    ``quiet_s`` is the time of the calibration loop on the quiet machine, None if unknown. The
    reason is only ever what other processes took, never the launch's own times: to repeat a launch
    because its result looks odd would make intervals too narrow.
    """
    if reason := taken(launch):
        return f"disturbed: {reason}"
    factor = slowdown([launch], quiet_s)
    return f"disturbed: {neighbour(factor)}" if factor > MOST_SLOWDOWN else ""


def taken(launch: Launch) -> str:
    """What the kernel or the device's driver says that others took; empty if it was little."""
    interference = launch.interference
    if interference is None:
        return ""
    if _on_accelerator(launch):
        # One thread works there. The calibration loop shows whether its processor is slow; what
        # others take of the rest does not matter.
        return _of_device(interference.device)
    if interference.steal_share > MOST_STEAL:
        return f"other guests of the host took {interference.steal_share:.0%} of the processors"
    if interference.others_share > MOST_OTHERS:
        return f"other processes took {interference.others_share:.0%} of the processors"
    return ""


def _on_accelerator(launch: Launch) -> bool:
    environment, interference = launch.environment, launch.interference
    return (environment is not None and environment.accelerator is not None) or (
        interference is not None and interference.device is not None
    )


def _of_device(state: DeviceState | None) -> str:
    """What disturbed the device; empty if nothing did, or if its driver cannot be asked."""
    if state is None:
        return ""
    if state.others:
        what = "another process" if state.others == 1 else f"{state.others} other processes"
        return f"{what} used the accelerator"
    faults = [reason for reason in state.slowed_by if reason in FAULTS]
    return f"the accelerator lowered its clocks ({', '.join(faults)})" if faults else ""


def neighbour(factor: float) -> str:
    """The sentence that a neighbour slowed the processors by this factor."""
    return f"a neighbour made the processors {factor:.2f} times as slow"


def calibration_time(launches: Iterable[Launch]) -> float | None:
    """Median seconds of the calibration loop in the launches that count; None if unknown."""
    known = [launch.calibration_s for launch in counted(launches) if launch.calibration_s]
    return median(known) if known else None


def slowdown(launches: Iterable[Launch], quiet_s: float | None) -> float:
    """How many times as slow as in quiet hours the processors were; 1 if unknown."""
    return times_as_slow(calibration_time(launches), quiet_s)


def times_as_slow(taken_s: float | None, quiet_s: float | None) -> float:
    """One time of the calibration loop over another one; 1 if either is unknown."""
    return taken_s / quiet_s if taken_s and quiet_s else 1.0


def quietest(launches: Iterable[Launch], *known: float | None) -> float | None:
    """The shortest time of the calibration loop, in seconds, over the launches and ``known``."""
    times_s = [*(launch.calibration_s for launch in launches), *known]
    return min((time_s for time_s in times_s if time_s), default=None)
