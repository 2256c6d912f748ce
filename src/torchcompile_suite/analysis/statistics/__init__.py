"""Statistics of recorded times: pure functions that need NumPy and SciPy only.

The unit is the launch, not the call. Calls of one process share its memory layout, its code
addresses and its neighbours, so their spread says little about the next process. For
mobilenetv2_100 at batch 4, one process gives the ratio within 1-2 %; between processes the ratio
varied by 4.5 %. See Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.

- ``condensed``: a launch without its samples
- ``launches``: the figures of one launch, and of all launches of a measurement
- ``disturbance``: which launches were slowed by other work on the machine
- ``intervals``: confidence intervals over launches, and arithmetic with them
- ``spread``: how much launches differ, from all cells of a machine together
- ``measured``: the ratio of a measurement, and the stopping rule
"""

from .condensed import CondensedLaunch, Figures
from .disturbance import (
    FAULTS,
    MOST_OTHERS,
    MOST_SLOWDOWN,
    MOST_STEAL,
    calibration_time,
    counted,
    disturbed,
    neighbour,
    quietest,
    slowdown,
    times_as_slow,
)
from .intervals import (
    CONFIDENCE,
    MOST_LOG,
    T_LEVEL,
    T_LEVEL_LATER,
    Interval,
    geometric_interval,
    geometric_mean,
    half_width,
    inverse,
    log_mean,
    log_variance,
    mean_interval,
    power,
    quotient,
    t_quantile,
    widened,
)
from .launches import (
    MIXED_CALLS,
    STEADY_TOLERANCE,
    STEADY_WINDOW,
    calls_to_break_even,
    calls_until_steady,
    calls_until_steady_of,
    compile_cost,
    compile_cost_of,
    compile_costs,
    eager_latency_of,
    figures,
    first_call_of,
    is_steady,
    latency_of,
    launch_eager_latency,
    launch_latency,
    launch_ratio,
    ratio_of,
    seconds_until_steady,
    seconds_until_steady_of,
    steady_call,
    warm_up_mixed_ratio,
)
from .measured import (
    FIRST_LOOK,
    measured_eager,
    measured_latency,
    measured_ratio,
    precise,
    sequential_interval,
)
from .spread import Prior, moderated, prior_spread

__all__ = [
    "CONFIDENCE",
    "FAULTS",
    "FIRST_LOOK",
    "MIXED_CALLS",
    "MOST_LOG",
    "MOST_OTHERS",
    "MOST_SLOWDOWN",
    "MOST_STEAL",
    "STEADY_TOLERANCE",
    "STEADY_WINDOW",
    "T_LEVEL",
    "T_LEVEL_LATER",
    "CondensedLaunch",
    "Figures",
    "Interval",
    "Prior",
    "calibration_time",
    "calls_to_break_even",
    "calls_until_steady",
    "calls_until_steady_of",
    "compile_cost",
    "compile_cost_of",
    "compile_costs",
    "counted",
    "disturbed",
    "eager_latency_of",
    "figures",
    "first_call_of",
    "geometric_interval",
    "geometric_mean",
    "half_width",
    "inverse",
    "is_steady",
    "latency_of",
    "launch_eager_latency",
    "launch_latency",
    "launch_ratio",
    "log_mean",
    "log_variance",
    "mean_interval",
    "measured_eager",
    "measured_latency",
    "measured_ratio",
    "moderated",
    "neighbour",
    "power",
    "precise",
    "prior_spread",
    "quietest",
    "quotient",
    "ratio_of",
    "seconds_until_steady",
    "seconds_until_steady_of",
    "sequential_interval",
    "slowdown",
    "steady_call",
    "t_quantile",
    "times_as_slow",
    "warm_up_mixed_ratio",
    "widened",
]
