"""Which way to write attention is the fastest when it is compiled?"""

from torchcompile_suite import matrix, workloads

from ._base import _Cells, _ColdCompile, _InEager, _Timed


class Attention(_Timed, _InEager, _ColdCompile, _Cells):
    """Attention spelled out, SDPA and FlexAttention, by sequence length.

    The baseline of a cell is the same way in eager. Ways are compared by their latencies.
    """

    question = matrix.ATTENTION
    param_names = ["workload", "mode"]
    params = [workloads.tagged("attention"), matrix.COMPILED]
