"""After how many calls is a compiled model as fast as in the steady state?"""

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics

from ._base import _Cells, _samples


class WarmUp(_Cells, question=matrix.WARM_UP):
    """The inference cells at batch 1, from the first call in the mode on."""

    def track_calls_until_steady(self, session, *point):
        """Calls before the first call that is as fast as a steady call."""
        launches = self._measured(session, *point).launches
        return _samples(map(statistics.calls_until_steady_of, launches))

    track_calls_until_steady.unit = "calls"

    def track_seconds_until_steady(self, session, *point):
        """Seconds of these calls at a cold start."""
        return statistics.seconds_until_steady_of(self._measured(session, *point).launches[0])

    track_seconds_until_steady.unit = "seconds"
