"""How much of the gain comes from the compiler, and how much from malloc?"""

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics

from ._base import _Cells


class Allocator(_Cells, question=matrix.ALLOCATOR):
    """The same cell in processes with another allocator (malloc)."""

    def track_eager_latency(self, session, *point):
        """Seconds a call in eager."""
        return self._of_pairs(statistics.launch_eager_latency, session, *point)

    track_eager_latency.unit = "seconds"

    def track_latency(self, session, *point):
        """Seconds a call compiled."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Compiled time over eager time, both with that allocator. Below 1: the compiler gains."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "mode/eager"
