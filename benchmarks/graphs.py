"""What does Dynamo capture, where do graphs break, and what causes a new capture?"""

from torchcompile_suite import matrix

from ._base import _Cells


class Graphs(_Cells, question=matrix.GRAPHS):
    """The inference cells at batch 1. The record has the reasons and places of breaks and skips."""

    def track_graphs(self, session, *point):
        """Graphs captured until the steady state."""
        return self._compiled("graphs", session, *point)

    track_graphs.unit = "graphs"

    def track_graph_breaks(self, session, *point):
        """Graph breaks."""
        return len(self._compiled("graph_breaks", session, *point))

    track_graph_breaks.unit = "breaks"

    def track_operators(self, session, *point):
        """Calls in the captured graphs."""
        return self._compiled("operators", session, *point)

    track_operators.unit = "operators"

    def track_guards(self, session, *point):
        """Guards of the captured graphs."""
        return self._compiled("guards", session, *point)

    track_guards.unit = "guards"

    def track_guard_check(self, session, *point):
        """Seconds to check the guards in each call."""
        return self._compiled("guard_check_s", session, *point)

    track_guard_check.unit = "seconds"

    def track_recompiles(self, session, *point):
        """Recompiles: captures of code that was captured before."""
        return self._compiled("recompiles", session, *point)

    track_recompiles.unit = "recompiles"

    def track_cudagraph_skips(self, session, *point):
        """Reasons why CUDA graphs were not used in a mode that uses them."""
        return len(self._compiled("cudagraph_skips", session, *point))

    track_cudagraph_skips.unit = "reasons"


class Guards(_Cells, question=matrix.GUARDS):
    """Between two calls, one property of the inputs changes."""

    def track_recaptures(self, session, *point):
        """Graphs captured after the change."""
        change = point[-1]
        return self._recaptures(change, session, *point)

    track_recaptures.unit = "graphs"
