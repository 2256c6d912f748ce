"""How much of the gain comes from the compiler, and how much from malloc?"""

from torchcompile_suite import matrix, workloads

from ._base import _Cells, _EagerMemory, _InEager, _Memory, _Timed


class _Allocators(_Timed, _InEager, _Memory, _EagerMemory, _Cells):
    """The same cell in processes with another allocator (malloc)."""

    def track_eager_page_faults(self, *point):
        """Page faults of a call in eager."""
        return self._page_faults("eager_paging", *point)

    track_eager_page_faults.unit = "faults"

    def track_page_faults(self, *point):
        """Page faults of a compiled call."""
        return self._page_faults("paging", *point)

    track_page_faults.unit = "faults"


class Allocator(_Allocators):
    """Inference at batch 1. ``default-heap``: the C library's malloc as a script gets it."""

    question = matrix.ALLOCATOR
    param_names = ["workload", "allocator"]
    params = [workloads.names(), matrix.ALLOCATORS]


class TrainingAllocator(_Allocators):
    """A training step in float32. ``default-heap``: the C library's malloc as a script gets it."""

    question = matrix.TRAINING_ALLOCATOR
    param_names = ["workload", "allocator"]
    params = [workloads.tagged("training"), matrix.ALLOCATORS]
