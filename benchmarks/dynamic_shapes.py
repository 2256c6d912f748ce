"""What do changing shapes cost with each policy?"""

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics

from ._base import _Cells


class DynamicShapes(_Cells, question=matrix.DYNAMIC_SHAPES):
    """A call is one pass over a stream of requests with different batch sizes or lengths."""

    def track_compiles(self, session, *point):
        """Graphs captured until the stream runs without new captures."""
        return self._compiled("graphs", session, *point)

    track_compiles.unit = "graphs"

    def track_first_pass(self, session, *point):
        """Seconds of the first pass, compiling included, with an empty cache."""
        return statistics.first_call_of(self._measured(session, *point).launches[0])

    track_first_pass.unit = "seconds"

    def track_latency(self, session, *point):
        """Seconds a pass in the steady state."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Time of a compiled pass, padding included, over time in eager. Below 1: a gain."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "mode/eager"

    def track_refused_again(self, session, *point):
        """Requests of a second pass that ``fail_on_recompile`` refuses."""
        return self._recaptures("tail", session, *point)

    track_refused_again.unit = "requests"

    def track_refused_new_shapes(self, session, *point):
        """Requests of other shapes that ``fail_on_recompile`` refuses after all passes."""
        return self._recaptures("new shapes", session, *point)

    track_refused_new_shapes.unit = "requests"
