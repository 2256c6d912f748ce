"""Does compiling pay for training, also in bfloat16 and with gradient accumulation?"""

from torchcompile_suite import matrix

from ._base import _Cells


class Training(_Cells, question=matrix.TRAINING):
    """An optimizer step: forward and backward for each micro-batch of 4, then AdamW.

    ``bfloat16`` means autocast, for eager and compiled calls. The optimizer is not compiled.
    """

    def track_latency(self, session, *point):
        """Seconds a step in the mode, in the steady state."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Time in the mode over time in eager, in the same dtype. Below 1: a gain."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "mode/eager"

    def track_cold_compile(self, session, *point):
        """Seconds lost to steps that compiled forward and backward, with an empty cache."""
        return self._compile_cost("cold", session, *point)

    track_cold_compile.unit = "seconds"

    def track_peak_memory(self, session, *point):
        """Peak memory of training in the mode, in bytes. On a CPU: `TrainingAllocator`."""
        return self._peak_memory("peak_memory_bytes", session, *point)

    track_peak_memory.unit = "bytes"
