"""What does a compiled call cost beyond its kernels, and from which size does a graph gain?"""

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics

from ._base import _Cells


class Overhead(_Cells, question=matrix.OVERHEAD):
    """Graphs of small operators: their arithmetic is nothing, so a call's time is its overhead."""

    def track_latency(self, session, *point):
        """Seconds a call in the mode."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_eager_latency(self, session, *point):
        """Seconds a call in eager."""
        return self._of_launches(statistics.eager_latency_of, session, *point)

    track_eager_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Time in the mode over time in eager. Below 1: a gain."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "mode/eager"

    def track_guards(self, session, *point):
        """Guards that Dynamo checks in each call."""
        return self._compiled("guards", session, *point)

    track_guards.unit = "guards"

    def track_guard_check(self, session, *point):
        """Seconds to check the guards in each call."""
        return self._compiled("guard_check_s", session, *point)

    track_guard_check.unit = "seconds"

    def track_launches(self, session, *point):
        """Kernel launches of one call."""
        return self._compiled("launches", session, *point)

    track_launches.unit = "launches"
