"""What does int8 gain on this device, alone and with the compiler?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import QUANTISATIONS
from torchcompile_suite.modes import MODES

from ._base import _Cells, _Timed


class Quantisation(_Timed, _Cells):
    """A forward pass with int8 weights by torchao, in eager or compiled."""

    question = matrix.QUANTISATION
    param_names = ["workload", "dtype", "mode"]
    params = [workloads.tagged("quantisation"), list(QUANTISATIONS), list(MODES)]

    def track_float32_latency(self, *point):
        """Seconds a call of the module in float32 in eager."""
        return self._of_launches(statistics.eager_latency_of, *point)

    track_float32_latency.unit = "seconds"

    def track_time_ratio(self, *point):
        """Time with int8 in the mode over time in float32 in eager. Below 1: a gain."""
        return self._time_ratio(*point)

    track_time_ratio.unit = "int8 mode/float32 eager"

    def track_float32_error(self, *point):
        """Relative error of the quantised module against the module in float32."""
        errors = [
            launch.accuracy.float32_error
            for launch in self._measured(*point).launches
            if launch.accuracy is not None and launch.accuracy.float32_error is not None
        ]
        if not errors:
            raise SkipNotImplemented("the outputs cannot be compared number by number")
        return max(errors)

    track_float32_error.unit = "relative error"
