"""What does a compiled call cost beyond its kernels, and from which size does a graph gain?"""

from torchcompile_suite import matrix, workloads

from ._base import _Cells, _InEager, _Timed


class Overhead(_Timed, _InEager, _Cells):
    """Graphs of small operators: their arithmetic is nothing, so a call's time is its overhead."""

    question = matrix.OVERHEAD
    param_names = ["workload", "mode"]
    params = [workloads.tagged("overhead"), matrix.COMPILED]

    def track_guards(self, *point):
        """Guards that Dynamo checks in each call."""
        return self._compiled("guards", *point)

    track_guards.unit = "guards"

    def track_guard_check(self, *point):
        """Seconds to check the guards in each call."""
        return self._compiled("guard_check_s", *point)

    track_guard_check.unit = "seconds"

    def track_launches(self, *point):
        """Kernel launches of one call."""
        return self._compiled("launches", *point)

    track_launches.unit = "launches"
