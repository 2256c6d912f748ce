"""What does Dynamo capture, where do graphs break, and what causes a new capture?"""

from torchcompile_suite import matrix, workloads

from ._base import _Cells


class Graphs(_Cells):
    """The inference cells at batch 1. The record has the reasons and places of breaks and skips."""

    question = matrix.GRAPHS
    param_names = ["workload", "mode"]
    params = [workloads.names(), matrix.COMPILED]

    def track_graphs(self, *point):
        """Graphs captured until the steady state."""
        return self._compiled("graphs", *point)

    track_graphs.unit = "graphs"

    def track_graph_breaks(self, *point):
        """Graph breaks."""
        return len(self._compiled("graph_breaks", *point))

    track_graph_breaks.unit = "breaks"

    def track_operators(self, *point):
        """Calls in the captured graphs."""
        return self._compiled("operators", *point)

    track_operators.unit = "operators"

    def track_guards(self, *point):
        """Guards of the captured graphs."""
        return self._compiled("guards", *point)

    track_guards.unit = "guards"

    def track_guard_check(self, *point):
        """Seconds to check the guards in each call."""
        return self._compiled("guard_check_s", *point)

    track_guard_check.unit = "seconds"

    def track_recompiles(self, *point):
        """Recompiles: captures of code that was captured before."""
        return self._compiled("recompiles", *point)

    track_recompiles.unit = "recompiles"

    def track_cudagraph_skips(self, *point):
        """Reasons why CUDA graphs were not used in a mode that uses them."""
        return len(self._compiled("cudagraph_skips", *point))

    track_cudagraph_skips.unit = "reasons"


class Guards(_Cells):
    """Between two calls, one property of the inputs changes."""

    question = matrix.GUARDS
    param_names = ["workload", "change"]
    params = [workloads.tagged("guards"), matrix.CHANGES]

    def track_recaptures(self, *point):
        """Graphs captured after the change."""
        change = point[-1]
        return self._recaptures(change, *point)

    track_recaptures.unit = "graphs"
