"""What Inductor tells while it generates code for an absent GPU. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Node(NamedTuple):
    """A node of the scheduler after fusion.

    - ``parts``: the names of the nodes that were fused into it.
    - ``reads``, ``writes``: names of buffers.
    - ``library``: whether it is the call of a library, and no generated code.
    - ``bytes_before``, ``bytes_after``: what its parts read and write, apart and together.
    - ``operators``: the ATen operators in it.
    """

    parts: tuple[str, ...]
    reads: frozenset[str]
    writes: frozenset[str]
    library: bool
    bytes_before: int
    bytes_after: int
    operators: tuple[str, ...]


class Notes(Protocol):
    """What `versions.hooks` tells while Inductor works on one graph after another."""

    def begun(self, backward: bool) -> None:
        """A graph is compiled from now on."""

    def nodes(self, nodes: list[Node]) -> None:
        """The scheduler's nodes, after fusion and before code generation."""

    def not_fused(self, one: str, other: str, reason: Callable[[], str]) -> None:
        """The scheduler did not fuse two nodes. ``reason`` makes the text."""

    def kernel(self, name: str, parts: Sequence[str]) -> None:
        """A Triton kernel holds these nodes. May come again for the same kernel."""

    def source(self, name: str, code: str) -> None:
        """A kernel's source, as a Python expression of the generated module."""

    def launched(self, name: str) -> None:
        """The generated code launches a generated kernel once."""

    def partitioned(self, nodes_outside: int, inside: list[int]) -> None:
        """The graph is divided for CUDA graphs. ``nodes_outside``: launches in none of them;
        ``inside``: launches in each.
        """

    def cuda_graph(self, skipped: bool) -> None:
        """A graph, or its next part, becomes a CUDA graph, or ``skipped``: torch will not."""

    def code(self, text: str) -> None:
        """The graph's generated module."""

    def assume(self, text: str) -> None:
        """A question that only a device can answer, and the answer that was assumed."""
