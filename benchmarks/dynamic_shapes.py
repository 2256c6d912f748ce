"""What do changing shapes cost with each policy?"""

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import statistics

from ._base import _Cells, _Timed


class DynamicShapes(_Timed, _Cells):
    """A call is one pass over a stream of requests with different batch sizes or lengths."""

    question = matrix.DYNAMIC_SHAPES
    param_names = ["workload", "policy"]
    params = [workloads.tagged("dynamic_shapes"), matrix.POLICIES]

    def track_compiles(self, *point):
        """Graphs captured until the stream runs without new captures."""
        return self._compiled("graphs", *point)

    track_compiles.unit = "graphs"

    def track_first_pass(self, *point):
        """Seconds of the first pass, compiling included, with an empty cache."""
        return statistics.first_call_of(self._measured(*point).launches[0])

    track_first_pass.unit = "seconds"

    def track_refused_again(self, *point):
        """Requests of a second pass that ``fail_on_recompile`` refuses."""
        return self._recaptures("tail", *point)

    track_refused_again.unit = "requests"

    def track_refused_new_shapes(self, *point):
        """Requests of another batch size that ``fail_on_recompile`` refuses after all passes."""
        return self._recaptures("new shapes", *point)

    track_refused_new_shapes.unit = "requests"
