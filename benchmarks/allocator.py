"""How much of the gain comes from the compiler, and how much from malloc?"""

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics

from ._base import _Cells


class _Allocators(_Cells, question=matrix.ALLOCATOR):
    """The same cell in processes with another allocator (malloc)."""

    def track_eager_latency(self, session, *point):
        """Seconds a call in eager."""
        return self._of_launches(statistics.eager_latency_of, session, *point)

    track_eager_latency.unit = "seconds"

    def track_latency(self, session, *point):
        """Seconds a call compiled."""
        return self._latency(session, *point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, *point):
        """Compiled time over eager time, both with that allocator. Below 1: the compiler gains."""
        return self._time_ratio(session, *point)

    track_time_ratio.unit = "mode/eager"

    def track_eager_page_faults(self, session, *point):
        """Page faults of a call in eager."""
        return self._page_faults("eager_paging", session, *point)

    track_eager_page_faults.unit = "faults"

    def track_page_faults(self, session, *point):
        """Page faults of a compiled call."""
        return self._page_faults("paging", session, *point)

    track_page_faults.unit = "faults"

    def track_eager_peak_memory(self, session, *point):
        """Peak resident set in bytes of a process that runs only eager."""
        return self._peak_memory("eager_peak_memory_bytes", session, *point)

    track_eager_peak_memory.unit = "bytes"

    def track_peak_memory(self, session, *point):
        """Peak resident set in bytes of a process that runs only the compiled model."""
        return self._peak_memory("peak_memory_bytes", session, *point)

    track_peak_memory.unit = "bytes"


class Allocator(_Allocators, question=matrix.ALLOCATOR):
    """Inference at batch 1. ``default-heap``: the C library's malloc as a script gets it."""


class TrainingAllocator(_Allocators, question=matrix.TRAINING_ALLOCATOR):
    """A training step in float32. ``default-heap``: the C library's malloc as a script gets it."""
