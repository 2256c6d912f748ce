"""From how many equal blocks does it pay to compile the block once, and not the whole model?"""

from torchcompile_suite import matrix, workloads

from ._base import _Cells, _ColdCompile, _Timed, _WarmCompile


class Regional(_Timed, _ColdCompile, _WarmCompile, _Cells):
    """A forward pass. ``whole``: the module in one graph. ``regional``: only the repeated block, by
    ``block.compile()``. ``nested-region``: the whole module, with the block as a region that is
    compiled once (``torch.compiler.nested_compile_region``).
    """

    question = matrix.REGIONAL
    param_names = ["workload", "way"]
    params = [workloads.tagged("regional"), matrix.REGIONAL_WAYS]

    def track_graphs(self, *point):
        """Graphs captured until the steady state."""
        return self._compiled("graphs", *point)

    track_graphs.unit = "graphs"

    def track_kernels(self, *point):
        """Kernels that Inductor generated."""
        return self._compiled("kernels", *point)

    track_kernels.unit = "kernels"

    def track_launches(self, *point):
        """Kernels that one call of each graph starts. The graph of a block is called once for each
        block; what stays in eager does not count.
        """
        return self._compiled("launches", *point)

    track_launches.unit = "launches"
