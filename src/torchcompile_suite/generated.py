"""Code that was generated for a target, and its counts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from .compiled import GraphBreak
from .fields import Count, Text

GENERATION = 2
"""Version of how code for a target is generated and counted, the ``generation`` field of a
`Generated`. 2: Inductor, which asks since 2.14 for the bandwidth of the memory, gets an answer."""


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """A Triton kernel that Inductor generated.

    - ``launches``: launches of it in one call. ``operators``: the ATen operators in it.
    - ``registers``, ``spilled_bytes``, ``shared_bytes``, ``warps``: of a thread, of a thread, of a
      block, and in a block, as ptxas and Triton say. None if the kernel was not assembled.
    - ``occupancy``: the share of the warps that a multiprocessor can hold at once, 0 to 1.
      ``limited_by``: what keeps it below 1 (registers, shared memory, blocks, warps); empty at 1.
    """

    name: Text
    launches: Count
    operators: list[Text] = field(default_factory=list)
    registers: Count | None = None
    spilled_bytes: Count | None = None
    shared_bytes: Count | None = None
    warps: Count | None = None
    occupancy: Annotated[float, Meta(ge=0, le=1)] | None = None
    limited_by: Text = ""


class Chain(Struct, frozen=True, forbid_unknown_fields=True):
    """Triton kernels, each of which reads what the one before has written.

    ``reasons``: why Inductor did not fuse each with the next, in Inductor's words; empty where
    Inductor did not try.
    """

    kernels: list[Text]
    reasons: list[Text]


class Code(Struct, frozen=True, forbid_unknown_fields=True):
    """What Inductor generated for the forward or the backward pass, as sums over graphs.

    - ``triton_kernels``: Triton kernels of all graphs. ``triton_launches``: launches of them in one
      call of each graph. ``library_launches``: calls of libraries (cuBLAS, cuDNN, ATen), each of
      which may launch more than one kernel. ``host_launches``: kernels for the host's processor.
    - ``nodes_before``, ``nodes_after``: the scheduler's nodes before and after fusion.
    - ``bytes_before``, ``bytes_after``: what these nodes read and write, as the scheduler counts.
      ``bytes_after`` is `torch._inductor.metrics.num_bytes_accessed`.
    - ``cuda_graphs``: CUDA graphs that a call launches. ``outside_launches``: launches in a call
      that are in none. Both None in a mode without CUDA graphs.
    - ``source_lines``, ``source_sha256``: of the generated Python code of all graphs.
    - ``kernels``: the Triton kernels. ``chains``: the longest that did not fuse, longest first.
    """

    triton_kernels: Count
    triton_launches: Count
    library_launches: Count
    host_launches: Count
    nodes_before: Count
    nodes_after: Count
    bytes_before: Count
    bytes_after: Count
    cuda_graphs: Count | None
    outside_launches: Count | None
    source_lines: Count
    source_sha256: Text
    kernels: list[Kernel] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)

    @property
    def launches(self) -> int:
        """Launches in a call, without CUDA graphs."""
        return self.triton_launches + self.library_launches + self.host_launches

    @property
    def launches_with_cuda_graphs(self) -> int | None:
        """Launches in a call, a CUDA graph as one; None in a mode without CUDA graphs."""
        if self.cuda_graphs is None or self.outside_launches is None:
            return None
        return self.cuda_graphs + self.outside_launches


class Generated(Struct, frozen=True, forbid_unknown_fields=True):
    """What the compiler captured, and generated for a target that is not here.

    Integers without noise: the same release gives the same ones on any machine.

    - ``graphs``, ``operators``: captured, and the calls in them. ``graph_breaks``: where and why.
    - ``forward``; ``backward`` is None without gradients.
    - ``cudagraph_skips``: why a graph does not run as a CUDA graph, in torch's words.
    - ``assumed``: what a real device would be asked, and what was assumed instead.
    """

    graphs: Count
    operators: Count
    forward: Code
    backward: Code | None = None
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    cudagraph_skips: list[Text] = field(default_factory=list)
    assumed: list[Text] = field(default_factory=list)
    generation: Annotated[int, Meta(ge=1)] = GENERATION

    @property
    def parts(self) -> list[Code]:
        """The code of the forward pass, and of the backward pass if there is one."""
        return [self.forward] if self.backward is None else [self.forward, self.backward]

    def total(self, name: str) -> int | None:
        """The sum over `parts` of a field or property of `Code`; None where a part has none.

        Raises AttributeError for a name that `Code` does not have.
        """
        values = [getattr(part, name) for part in self.parts]
        return None if None in values else sum(values)
