"""Where does the gain come from: capture, autograd, CUDA graphs or generated code?"""

from torchcompile_suite import matrix, workloads

from ._base import _Cells, _ColdCompile, _Timed


class Backends(_Timed, _ColdCompile, _Cells):
    """torch.compile with different backends. ``eager`` only captures graphs, ``aot_eager`` adds
    AOTAutograd, ``cudagraphs`` adds CUDA graphs, ``inductor`` generates code.
    """

    question = matrix.BACKEND
    param_names = ["workload", "backend"]
    params = [workloads.tagged("backends"), matrix.BACKENDS]

    def track_time_ratio(self, *point):
        """Time with the backend over time in eager. Below 1: a gain."""
        return self._time_ratio(*point)

    track_time_ratio.unit = "backend/eager"
