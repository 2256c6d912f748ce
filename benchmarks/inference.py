"""Does compiling pay for inference, in which mode, and what does it cost?"""

from torchcompile_suite import matrix, workloads
from torchcompile_suite.modes import MODES

from ._base import _Cells, _ColdCompile, _Memory, _Timed, _WarmCompile


class Inference(_Timed, _ColdCompile, _WarmCompile, _Memory, _Cells):
    """A forward pass in eval and inference mode, in float32, always with the same input shape."""

    question = matrix.INFERENCE
    param_names = ["workload", "batch_size", "mode"]
    params = [workloads.names(), [1, 8, 5], list(MODES)]
