"""After how many calls is a compiled model as fast as in the steady state?"""

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import statistics

from ._base import _Cells, _samples


class WarmUp(_Cells):
    """The inference cells at batch 1, from the first call in the mode on."""

    question = matrix.WARM_UP
    param_names = ["workload", "mode"]
    params = [workloads.names(), matrix.COMPILED]

    def track_calls_until_steady(self, *point):
        """Calls before the first call that is as fast as a steady call."""
        launches = self._measured(*point).launches
        return _samples(map(statistics.calls_until_steady_of, launches))

    track_calls_until_steady.unit = "calls"

    def track_seconds_until_steady(self, *point):
        """Seconds of these calls at a cold start."""
        return statistics.seconds_until_steady_of(self._measured(*point).launches[0])

    track_seconds_until_steady.unit = "seconds"
