"""Which way to write attention is the fastest when it is compiled?"""

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics

from ._base import _Cells


class Attention(_Cells, question=matrix.ATTENTION):
    """Attention spelled out, SDPA and FlexAttention, by sequence length.

    The baseline of a cell is the same way in eager. Ways are compared by their latencies.
    """

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

    def track_cold_compile(self, session, *point):
        """Seconds lost to compiling at the first call, without caches."""
        return self._compile_cost("cold", session, *point)

    track_cold_compile.unit = "seconds"
