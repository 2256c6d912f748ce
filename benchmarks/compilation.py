"""What takes the time of compiling, and how much memory and disk does compiling need?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix

from ._base import _Cells


class Compilation(_Cells, question=matrix.COMPILATION):
    """A cold start of the inference cells at batch 1. No phase contains another phase."""

    def track_dynamo(self, session, *point):
        """Seconds in Dynamo, which makes graphs and guards from bytecode."""
        return self._phase("dynamo", session, *point)

    track_dynamo.unit = "seconds"

    def track_aot_autograd(self, session, *point):
        """Seconds in AOTAutograd, which makes functional graphs of ATen operators."""
        return self._phase("aot_autograd", session, *point)

    track_aot_autograd.unit = "seconds"

    def track_inductor(self, session, *point):
        """Seconds in Inductor for lowering, fusion and code generation."""
        return self._phase("inductor", session, *point)

    track_inductor.unit = "seconds"

    def track_kernel_build(self, session, *point):
        """Seconds that Inductor waits for the C++ or Triton compiler."""
        return self._phase("kernel_build", session, *point)

    track_kernel_build.unit = "seconds"

    def _phase(self, name, session, *point):
        phases = self._compiled("phases_s", session, *point)
        if name not in phases:
            raise SkipNotImplemented("this release has no timer for it")
        return phases[name]

    def track_cache_size(self, session, *point):
        """Size of the cache on disk after compiling, in bytes."""
        return self._compiled("cache_bytes", session, *point)

    track_cache_size.unit = "bytes"

    def track_peak_memory(self, session, *point):
        """Peak memory of the process while it compiles, in bytes, without its child processes."""
        return self._compiled("peak_memory_bytes", session, *point)

    track_peak_memory.unit = "bytes"
