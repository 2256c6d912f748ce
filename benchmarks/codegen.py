"""What does the compiler generate for a GPU that is not here? Integers, the same on any machine."""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix, targets, workloads
from torchcompile_suite.generated import GENERATION

from ._base import _Cells


class _Generated(_Cells):
    """The counts of a cell with a target. The record has kernels, chains and reasons."""

    version = str(GENERATION)

    def _generated(self, *point):
        return self._measured(*point).generated

    def _total(self, name, *point):
        """The sum over forward and backward pass. Raises SkipNotImplemented (n/a) for a count of
        CUDA graphs in a mode without them.
        """
        value = self._generated(*point).total(name)
        if value is None:
            raise SkipNotImplemented("the mode uses no CUDA graphs")
        return value

    def track_graphs(self, *point):
        """Graphs that Dynamo captured."""
        return self._generated(*point).graphs

    track_graphs.unit = "graphs"

    def track_graph_breaks(self, *point):
        """Graph breaks."""
        return len(self._generated(*point).graph_breaks)

    track_graph_breaks.unit = "breaks"

    def track_triton_kernels(self, *point):
        """Triton kernels of all graphs."""
        return self._total("triton_kernels", *point)

    track_triton_kernels.unit = "kernels"

    def track_launches(self, *point):
        """Launches of a call, calls of libraries included, without CUDA graphs."""
        return self._total("launches", *point)

    track_launches.unit = "launches"

    def track_library_launches(self, *point):
        """Calls of libraries, such as cuBLAS and cuDNN."""
        return self._total("library_launches", *point)

    track_library_launches.unit = "launches"

    def track_launches_with_cuda_graphs(self, *point):
        """Launches of a call, a CUDA graph as one."""
        return self._total("launches_with_cuda_graphs", *point)

    track_launches_with_cuda_graphs.unit = "launches"

    def track_cudagraph_skips(self, *point):
        """Reasons why a graph does not run as a CUDA graph, in a mode that uses them."""
        self._total("cuda_graphs", *point)
        return len(self._generated(*point).cudagraph_skips)

    track_cudagraph_skips.unit = "reasons"

    def track_nodes_before_fusion(self, *point):
        """The scheduler's nodes before fusion."""
        return self._total("nodes_before", *point)

    track_nodes_before_fusion.unit = "nodes"

    def track_nodes_after_fusion(self, *point):
        """The scheduler's nodes after fusion."""
        return self._total("nodes_after", *point)

    track_nodes_after_fusion.unit = "nodes"

    def track_bytes_before_fusion(self, *point):
        """Bytes that a call would read and write without fusion, as the scheduler counts them."""
        return self._total("bytes_before", *point)

    track_bytes_before_fusion.unit = "bytes"

    def track_bytes_after_fusion(self, *point):
        """Bytes that a call reads and writes after fusion, as the scheduler counts them."""
        return self._total("bytes_after", *point)

    track_bytes_after_fusion.unit = "bytes"

    def track_source_lines(self, *point):
        """Lines of the generated code."""
        return self._total("source_lines", *point)

    track_source_lines.unit = "lines"


class Codegen(_Generated):
    """A forward pass at batch 1."""

    question = matrix.CODEGEN
    param_names = ["workload", "mode", "target"]
    params = [workloads.names(), matrix.COMPILED, list(targets.read())]


class TrainingCodegen(_Generated):
    """Forward and backward pass of a training step of 4. The optimizer is not compiled."""

    question = matrix.TRAINING_CODEGEN
    param_names = ["workload", "mode", "target"]
    params = [workloads.tagged("training"), matrix.COMPILED, list(targets.read())]

    def track_backward_launches(self, *point):
        """Launches of the backward pass."""
        backward = self._generated(*point).backward
        if backward is None:
            raise SkipNotImplemented("the workload has no backward pass")
        return backward.launches

    track_backward_launches.unit = "launches"
