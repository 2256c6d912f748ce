"""Does compiling pay for training, also in bfloat16 and with gradient accumulation?"""

from torchcompile_suite import matrix, workloads
from torchcompile_suite.modes import MODES

from ._base import _Cells, _ColdCompile, _Memory, _Timed


class Training(_Timed, _ColdCompile, _Memory, _Cells):
    """An optimizer step: forward and backward for each micro-batch of 4, then AdamW.

    ``bfloat16`` means autocast, for eager and compiled calls. The optimizer is not compiled.
    """

    question = matrix.TRAINING
    param_names = ["workload", "mode", "dtype", "accumulation"]
    params = [workloads.tagged("training"), list(MODES), matrix.DTYPES, [1, 4]]
