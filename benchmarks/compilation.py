"""Where does compiling take its time, and what does it leave behind?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix

from ._base import _Cells


class Compilation(_Cells, question=matrix.COMPILATION):
    """A cold start of the inference cells at batch 1, by phase; none contains another."""

    def track_dynamo(self, session, *point):
        """Seconds in Dynamo: bytecode to graphs and guards."""
        return self._phase("dynamo", session, *point)

    track_dynamo.unit = "seconds"

    def track_aot_autograd(self, session, *point):
        """Seconds in AOTAutograd: functional graphs of ATen operators."""
        return self._phase("aot_autograd", session, *point)

    track_aot_autograd.unit = "seconds"

    def track_inductor(self, session, *point):
        """Seconds in Inductor: lowering, fusion and writing the code."""
        return self._phase("inductor", session, *point)

    track_inductor.unit = "seconds"

    def track_kernel_build(self, session, *point):
        """Seconds waiting for the C++ or Triton compiler."""
        return self._phase("kernel_build", session, *point)

    track_kernel_build.unit = "seconds"

    def _phase(self, name, session, *point):
        phases = self._compiled("phases_s", session, *point)
        if name not in phases:
            raise SkipNotImplemented("this release has no timer for it")
        return phases[name]

    def track_cache_size(self, session, *point):
        """Bytes on disk after compiling."""
        return self._compiled("cache_bytes", session, *point)

    track_cache_size.unit = "bytes"

    def track_peak_memory(self, session, *point):
        """Bytes the process held at most while compiling; its compilers are other processes."""
        return self._compiled("peak_memory_bytes", session, *point)

    track_peak_memory.unit = "bytes"
