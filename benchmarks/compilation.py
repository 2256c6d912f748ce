"""What takes the time of compiling, and how much memory and disk does compiling need?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix, workloads

from ._base import _Cells


class Compilation(_Cells):
    """A cold start of the inference cells at batch 1. No phase contains another phase."""

    question = matrix.COMPILATION
    param_names = ["workload", "mode"]
    params = [workloads.names(), matrix.COMPILED]

    def track_dynamo(self, *point):
        """Seconds in Dynamo, which makes graphs and guards from bytecode."""
        return self._phase("dynamo", *point)

    track_dynamo.unit = "seconds"

    def track_aot_autograd(self, *point):
        """Seconds in AOTAutograd, which makes functional graphs of ATen operators."""
        return self._phase("aot_autograd", *point)

    track_aot_autograd.unit = "seconds"

    def track_inductor(self, *point):
        """Seconds in Inductor for lowering, fusion and code generation."""
        return self._phase("inductor", *point)

    track_inductor.unit = "seconds"

    def track_kernel_build(self, *point):
        """Seconds that Inductor waits for the C++ or Triton compiler."""
        return self._phase("kernel_build", *point)

    track_kernel_build.unit = "seconds"

    def _phase(self, name, *point):
        phases = self._compiled("phases_s", *point)
        if name not in phases:
            raise SkipNotImplemented("this release has no timer for it")
        return phases[name]

    def track_cache_size(self, *point):
        """Size of the cache on disk after compiling, in bytes."""
        return self._compiled("cache_bytes", *point)

    track_cache_size.unit = "bytes"

    def track_peak_memory(self, *point):
        """Peak memory of the process while it compiles, in bytes, without its child processes."""
        return self._compiled("peak_memory_bytes", *point)

    track_peak_memory.unit = "bytes"
