"""Which launches other work on the machine slowed, and by how much."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from ...cell import DeviceState, Launch
from ...host import nvml

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


def counted(launches: Iterable[Launch]) -> list[Launch]:
    """The launches whose pairs count: all except those that were disturbed and repeated."""
    return [launch for launch in launches if not launch.disturbed]


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
