"""What does bfloat16 gain, alone and with the compiler?"""

from torchcompile_suite import matrix, workloads
from torchcompile_suite.modes import MODES

from ._base import _Cells, _Timed


class Precision(_Timed, _Cells):
    """A forward pass in a bfloat16 autocast region, eager or compiled."""

    question = matrix.PRECISION
    param_names = ["workload", "batch_size", "mode"]
    params = [workloads.tagged("precision"), [1, 5], list(MODES)]

    def track_time_ratio(self, *point):
        """Time in bfloat16 in the mode over time in float32 in eager. Below 1: a gain."""
        return self._time_ratio(*point)

    track_time_ratio.unit = "bfloat16 mode/float32 eager"
