"""Does compiling pay for inference, in which mode, and what does it cost?"""

from torchcompile_suite import matrix

from ._base import _Cells


class Inference(_Cells, question=matrix.INFERENCE):
    """A forward pass in eval and inference mode, in float32, always with the same input shape."""

    def track_latency(self, session, *point):
        """Seconds a call in the mode, in the steady state."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Time in the mode over time in eager, in turns. Below 1: a gain."""
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

    def track_peak_memory(self, session, *point):
        """Peak memory in the mode, in bytes, reserved by torch on a GPU. On a CPU: `Allocator`."""
        return self._peak_memory("peak_memory_bytes", session, *point)

    track_peak_memory.unit = "bytes"
