"""Does freezing the weights pay: faster or slower calls, compile time, memory, accuracy?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix, workloads

from ._base import _Cells, _ColdCompile, _EagerMemory, _Memory, _samples, _Timed, _WarmCompile


class Freezing(_Timed, _ColdCompile, _WarmCompile, _Cells):
    """A forward pass in inference mode. ``freezing``: the weights are constants of the generated
    code (``torch._inductor.config.freezing``). ``whole``: plain torch.compile.
    """

    question = matrix.FREEZING
    param_names = ["workload", "way"]
    params = [workloads.tagged("freezing"), matrix.FREEZING_WAYS]

    def track_error(self, *point):
        """Error of the output against the float64 reference, relative (root mean square)."""
        launches = self._measured(*point).launches
        errors = [one.accuracy.mode_error for one in launches if one.accuracy is not None]
        if not errors or None in errors:
            raise SkipNotImplemented("the outputs were not compared")
        return _samples(errors)

    track_error.unit = "relative error"


class FreezingMemory(_Memory, _EagerMemory, _Cells):
    """The same with malloc as a script gets it: a settled heap holds more by design."""

    question = matrix.FREEZING_MEMORY
    param_names = ["workload", "way"]
    params = [workloads.tagged("freezing"), matrix.FREEZING_WAYS]
