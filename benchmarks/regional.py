"""From how many equal blocks does it pay to compile the block once, and not the whole model?"""

from torchcompile_suite import matrix

from ._base import _Cells


class Regional(_Cells, question=matrix.REGIONAL):
    """A forward pass. ``whole``: the module in one graph. ``regional``: only the repeated block, by
    ``block.compile()``. ``nested-region``: the whole module, with the block as a region that is
    compiled once (``torch.compiler.nested_compile_region``).
    """

    def track_latency(self, session, *point):
        """Seconds a call, in the steady state."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Compiled time over eager time. Below 1: a gain."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "mode/eager"

    def track_cold_compile(self, session, *point):
        """Seconds lost to calls that compiled, with an empty cache."""
        return self._compile_cost("cold", session, *point)

    track_cold_compile.unit = "seconds"

    def track_warm_compile(self, session, *point):
        """Seconds lost to calls that compiled, with Inductor's cache of an earlier process."""
        return self._compile_cost("warm", session, *point)

    track_warm_compile.unit = "seconds"

    def track_graphs(self, session, *point):
        """Graphs captured until the steady state."""
        return self._compiled("graphs", session, *point)

    track_graphs.unit = "graphs"

    def track_kernels(self, session, *point):
        """Kernels that Inductor generated."""
        return self._compiled("kernels", session, *point)

    track_kernels.unit = "kernels"

    def track_launches(self, session, *point):
        """Kernels that one call of each graph starts. The graph of a block is called once for each
        block; what stays in eager does not count.
        """
        return self._compiled("launches", session, *point)

    track_launches.unit = "launches"
