"""Does compiling pay for inference, in which mode, at what price?"""

from torchcompile_suite import matrix

from ._base import _Cells


class Inference(_Cells, question=matrix.INFERENCE):
    """A forward pass in eval and inference mode, float32, the same input shape every call."""

    def track_latency(self, session, *point):
        """Seconds a call in the mode, steady state."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Time in the mode over time in eager, interleaved in one process; below 1 is a gain."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "mode/eager"

    def track_cold_compile(self, session, *point):
        """Seconds lost to calls that compiled, nothing cached."""
        return self._compile_cost("cold", session, *point)

    track_cold_compile.unit = "seconds"

    def track_warm_compile(self, session, *point):
        """Seconds lost to calls that compiled, Inductor's disk cache filled."""
        return self._compile_cost("warm", session, *point)

    track_warm_compile.unit = "seconds"

    def track_peak_memory(self, session, *point):
        """Bytes held at most while running in the mode: resident on a CPU, allocated on a GPU."""
        return self._peak_memory(session, *point)

    track_peak_memory.unit = "bytes"
