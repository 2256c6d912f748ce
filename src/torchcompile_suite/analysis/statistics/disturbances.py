"""Which launches count: what others took of the machine, and where the host ran its processors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import not_
from statistics import median, median_low

from ...conditions import DeviceState
from ...host import nvml
from ...host.probes import FAR, LEAST_NEAR, OFTEN_CROWDED
from ...measurement import Launch
from .intervals import geometric_interval
from .one_launch import ratio_of

# Places where each processor has a core of its own; "" in records from before schema 16. Which of
# such launches are near or far their hand-offs tell: each launch knows only its own.
APART = frozenset(["near", "far", ""])
# The stopping rule looks first after this many launches. With fewer, t gives no useful interval.
FIRST_LOOK = 3
# A launch is repeated if others took more than these shares of the processors' time while it timed
# its pairs.
MOST_STEAL = 0.05
MOST_OTHERS = 0.10
# Limit for the time of the calibration loop, relative to the quietest one. In quiet hours the loop
# varies by some per cent; on a core that a neighbour shares it takes 40 % longer.
MOST_SLOWDOWN = 1.2
# Reasons for a lower clock of an accelerator that come from outside: heat, and a supply that fails.
# The cap of the power is none of them: a GPU reaches it by the measured work itself, on every run.
# Neither are clocks that somebody set: another launch would have them, too.
FAULTS = frozenset({nvml.SLOWDOWN, nvml.SOFTWARE_HEAT, nvml.HARDWARE_HEAT, nvml.POWER_BRAKE})


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
