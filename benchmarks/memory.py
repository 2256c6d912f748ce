"""Does the memory of a process grow over thousands of calls?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import growth, statistics

from ._base import _Cells, _samples


class MemoryOverTime(_Cells):
    """Inference with malloc as a script gets it. ``shapes``: fixed, or a stream of twelve."""

    question = matrix.MEMORY_OVER_TIME
    param_names = ["workload", "shapes"]
    params = [workloads.tagged("memory_over_time"), matrix.CHANGING]

    def track_growth(self, *point):
        """Bytes a call by which the resident set of a compiled process grows."""
        return self._grown(growth.resident_slope, "mode", *point)

    track_growth.unit = "bytes/call"

    def track_eager_growth(self, *point):
        """Bytes a call by which the resident set of an eager process grows."""
        return self._grown(growth.resident_slope, "eager", *point)

    track_eager_growth.unit = "bytes/call"

    def track_allocated_growth(self, *point):
        """Bytes a call by which the allocator of a compiled process hands out more."""
        return self._grown(growth.allocated_slope, "mode", *point)

    track_allocated_growth.unit = "bytes/call"

    def track_resident(self, *point):
        """The resident set of a compiled process after all calls, in bytes."""
        return self._grown(lambda sampled: sampled.resident_bytes[-1], "mode", *point)

    track_resident.unit = "bytes"

    def track_eager_resident(self, *point):
        """The resident set of an eager process after all calls, in bytes."""
        return self._grown(lambda sampled: sampled.resident_bytes[-1], "eager", *point)

    track_eager_resident.unit = "bytes"

    def _grown(self, value, side, *point):
        """A figure of the samples of each launch that counts. n/a where it is not known."""
        launches = statistics.counted(self._measured(*point).launches)
        values = [
            value(sampled) for launch in launches if (sampled := growth.of_side(launch, side))
        ]
        if not values or None in values:
            raise SkipNotImplemented("the C library does not tell what its malloc has handed out")
        return _samples(values)
