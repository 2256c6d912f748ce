"""Where does the gain come from: capture, autograd, CUDA graphs or generated code?"""

from torchcompile_suite import matrix

from ._base import _Cells


class Backends(_Cells, question=matrix.BACKEND):
    """torch.compile with different backends. ``eager`` only captures graphs, ``aot_eager`` adds
    AOTAutograd, ``cudagraphs`` adds CUDA graphs, ``inductor`` generates code.
    """

    def track_latency(self, session, *point):
        """Seconds a call, in the steady state."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Time with the backend over time in eager. Below 1: a gain."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "backend/eager"

    def track_cold_compile(self, session, *point):
        """Seconds lost to calls that compiled, with an empty cache."""
        return self._compile_cost("cold", session, *point)

    track_cold_compile.unit = "seconds"
