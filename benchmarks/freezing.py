"""Does freezing the weights pay: faster or slower calls, compile time, memory, accuracy?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix

from ._base import _Cells, _samples


class Freezing(_Cells, question=matrix.FREEZING):
    """A forward pass in inference mode. ``freezing``: the weights are constants of the generated
    code (``torch._inductor.config.freezing``). ``whole``: plain torch.compile.
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

    def track_error(self, session, *point):
        """Error of the output against the float64 reference, relative (root mean square)."""
        launches = self._measured(session, *point).launches
        errors = [one.accuracy.mode_error for one in launches if one.accuracy is not None]
        if not errors or None in errors:
            raise SkipNotImplemented("the outputs were not compared")
        return _samples(errors)

    track_error.unit = "relative error"


class FreezingMemory(_Cells, question=matrix.FREEZING_MEMORY):
    """The same with malloc as a script gets it: a settled heap holds more by design."""

    def track_peak_memory(self, session, *point):
        """Peak resident set in bytes of a process that runs only the compiled model."""
        return self._peak_memory("peak_memory_bytes", session, *point)

    track_peak_memory.unit = "bytes"

    def track_eager_peak_memory(self, session, *point):
        """Peak resident set in bytes of a process that runs only eager."""
        return self._peak_memory("eager_peak_memory_bytes", session, *point)

    track_eager_peak_memory.unit = "bytes"
