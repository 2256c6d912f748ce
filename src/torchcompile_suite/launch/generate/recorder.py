"""Counts what Inductor writes, for the forward and for the backward pass."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...generated import Chain, Code, Kernel
from .assembly import Assembled, Place

FORWARD, BACKWARD = "forward", "backward"
# Chains that are kept of each pass, and the kernels of a chain and the operators of a kernel that
# are named.
MOST_CHAINS = 3
MOST_KERNELS = 12
MOST_OPERATORS = 24
# Of a reason: torch's messages may print whole sets of dependencies.
LONGEST_REASON = 200
# The name of a fused node is that of its parts, joined by "_". A part of a graph inside of a graph
# has that graph's name before its own: true_graph_0_op3.
_PART = re.compile(r"(?!_)\w*?(?:op|buf)\d+")
# Comments of the generated code that depend on the process: a number of the graph, a cache folder.
_OF_THE_PROCESS = re.compile(r"^\s*# (AOT ID|kernel path):.*\n", re.MULTILINE)


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


class _Refusal(NamedTuple):
    """The scheduler did not fuse two nodes: the parts of each, and why it said so."""

    ours: frozenset[str]
    theirs: frozenset[str]
    reason: Callable[[], str]


class _Graph:
    """What was written for one graph. Inductor numbers the kernels of each anew."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.triton: dict[str, None] = {}  # kernels
        self.kernel_of: dict[str, str] = {}  # a part of a node: its kernel
        self.sources: dict[str, str] = {}
        self.launches: Counter[str] = Counter()
        # By the names of both nodes: what was said last, in this order.
        self.refusals: dict[tuple[str, str], _Refusal] = {}
        self.divided = 0  # launches that are in none of the parts for CUDA graphs
        self.inside: list[int] = []  # launches of each such part that comes
        self.parts = 0  # launches of all parts
        self.loops = False  # whether a part that is no CUDA graph runs another graph
        self.cuda_graphs = 0
        self.code: list[str] = []

    @property
    def outside(self) -> int:
        """Launches that are in no CUDA graph."""
        total = self.launches.total() + sum(node.library for node in self.nodes)
        if not self.cuda_graphs:
            return total
        # No part counts what the graph inside of it launches.
        return self.divided + (total - self.parts if self.loops else 0)

    def kernel(self, node: Node) -> str:
        """The Triton kernel of a node; empty for a call of a library."""
        return next(filter(None, map(self.kernel_of.get, node.parts)), "")


@dataclasses.dataclass(eq=False)
class _Link:
    """A node in the longest chain of kernels that ends with it. ``length`` is 0 for no kernel."""

    number: int
    graph: _Graph
    node: Node
    before: _Link | None
    length: int


class Recorder:
    """What Inductor wrote for one cell: `hooks.watching` tells it, one graph after another."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._passes: dict[str, list[_Graph]] = {FORWARD: []}
        self._now = _Graph()
        self.assumed: dict[str, None] = {}

    def begun(self, backward: bool) -> None:
        """A graph is compiled from now on."""
        self._now = _Graph()
        self._passes.setdefault(BACKWARD if backward else FORWARD, []).append(self._now)

    def nodes(self, nodes: list[Node]) -> None:
        """The scheduler's nodes, after fusion and before code generation."""
        self._now.nodes += nodes

    def not_fused(self, one: str, other: str, reason: Callable[[], str]) -> None:
        """The scheduler did not fuse two nodes. ``reason`` makes the text."""
        ours, theirs = (frozenset(_PART.findall(name)) for name in (one, other))
        self._now.refusals.pop((one, other), None)
        self._now.refusals[one, other] = _Refusal(ours, theirs, reason)

    def kernel(self, name: str, parts: Sequence[str]) -> None:
        """A Triton kernel holds these nodes. May come again for the same kernel."""
        self._now.triton[name] = None
        self._now.kernel_of |= dict.fromkeys(parts, name)

    def source(self, name: str, code: str) -> None:
        """A kernel's source, as a Python expression of the generated module."""
        self._now.sources[name] = code

    def launched(self, name: str) -> None:
        """The generated code launches a generated kernel once."""
        self._now.launches[name] += 1

    def partitioned(self, nodes_outside: int, inside: list[int], loops: bool = False) -> None:
        """The graph is divided for CUDA graphs. ``nodes_outside``: launches in none of them;
        ``inside``: launches in each; ``loops``: whether one outside runs another graph.
        """
        self._now.divided, self._now.inside = nodes_outside, list(inside)
        self._now.parts, self._now.loops = nodes_outside + sum(inside), loops

    def cuda_graph(self, skipped: bool) -> None:
        """A graph, or its next part, becomes a CUDA graph, or ``skipped``: torch will not."""
        launches = self._now.inside.pop(0) if self._now.inside else 0
        if skipped:
            self._now.divided += launches
        else:
            self._now.cuda_graphs += 1

    def code(self, text: str) -> None:
        """The graph's generated module."""
        self._now.code.append(_OF_THE_PROCESS.sub("", text))

    def assume(self, text: str) -> None:
        """A question that only a device can answer, and the answer that was assumed."""
        self.assumed[text] = None

    def sources(self) -> Iterator[tuple[Place, str]]:
        """The source of each Triton kernel."""
        for direction, graphs in self._passes.items():
            for number, graph in enumerate(graphs):
                for name in graph.triton:
                    if name in graph.sources:
                        yield Place(direction, number, name), graph.sources[name]

    def modules(self) -> dict[str, list[str]]:
        """The generated modules by pass."""
        return {
            direction: [text for graph in graphs for text in graph.code]
            for direction, graphs in self._passes.items()
        }

    def result(
        self, with_cuda_graphs: bool, assembled: Mapping[Place, Assembled]
    ) -> tuple[Code, Code | None]:
        """The code of the forward pass, and of the backward pass if there is one.

        ``with_cuda_graphs``: the mode uses them.
        """
        codes = {
            direction: _code(graphs, direction, with_cuda_graphs, assembled)
            for direction, graphs in self._passes.items()
        }
        return codes[FORWARD], codes.get(BACKWARD)


def _code(
    graphs: list[_Graph],
    direction: str,
    with_cuda_graphs: bool,
    assembled: Mapping[Place, Assembled],
) -> Code:
    text = "\n".join(text for graph in graphs for text in graph.code)
    nodes = [node for graph in graphs for node in graph.nodes]
    triton = sum(graph.launches[name] for graph in graphs for name in graph.triton)
    kernels = []
    for number, graph in enumerate(graphs):
        operators = _operators(graph)
        for name in graph.triton:
            sizes = assembled.get(Place(direction, number, name))
            kernels.append(
                Kernel(
                    name=name,
                    launches=graph.launches[name],
                    operators=operators.get(name, [])[:MOST_OPERATORS],
                    **({} if sizes is None else sizes._asdict()),
                )
            )
    return Code(
        triton_kernels=len(kernels),
        triton_launches=triton,
        library_launches=sum(node.library for node in nodes),
        host_launches=sum(graph.launches.total() for graph in graphs) - triton,
        nodes_before=sum(len(node.parts) for node in nodes),
        nodes_after=len(nodes),
        bytes_before=sum(node.bytes_before for node in nodes),
        bytes_after=sum(node.bytes_after for node in nodes),
        cuda_graphs=sum(graph.cuda_graphs for graph in graphs) if with_cuda_graphs else None,
        outside_launches=sum(graph.outside for graph in graphs) if with_cuda_graphs else None,
        source_lines=len(text.splitlines()),
        source_sha256=hashlib.sha256(text.encode()).hexdigest(),
        kernels=kernels,
        chains=_chains(graphs),
    )


def _operators(graph: _Graph) -> dict[str, list[str]]:
    """The ATen operators of each Triton kernel."""
    found: dict[str, set[str]] = {}
    for node in graph.nodes:
        found.setdefault(graph.kernel(node), set()).update(node.operators)
    return {kernel: sorted(operators) for kernel, operators in found.items()}


def _chains(graphs: list[_Graph]) -> list[Chain]:
    """The longest chains of Triton kernels of which each reads what the one before wrote.

    A call of a library ends a chain. Each kernel launch is in at most one of the chains.
    """
    links: list[_Link] = []
    for graph in graphs:
        writer: dict[str, _Link] = {}
        for node in graph.nodes:
            link = _Link(len(links), graph, node, None, 0)
            if graph.kernel(node):
                producers = [writer[name] for name in node.reads if name in writer]
                ends = [one for one in producers if one.length]
                link.before = max(ends, key=lambda one: (one.length, one.number), default=None)
                link.length = 1 + (link.before.length if link.before else 0)
            links.append(link)
            writer |= dict.fromkeys(node.writes, link)
    chains: list[Chain] = []
    taken: set[_Link] = set()
    for end in sorted(links, key=lambda one: -one.length):
        chain: list[_Link] = []
        at: _Link | None = end
        while at is not None and at not in taken:
            chain.append(at)
            at = at.before
        if len(chain) < 2 or len(chains) == MOST_CHAINS:
            continue
        taken.update(chain)
        chain.reverse()
        named = chain[:MOST_KERNELS]
        chains.append(
            Chain(
                [one.graph.kernel(one.node) for one in named],
                [_reason(one, other) for one, other in pairwise(named)],
            )
        )
    return sorted(chains, key=lambda chain: -len(chain.kernels))


def _reason(one: _Link, other: _Link) -> str:
    """Why Inductor did not fuse two nodes: what it said of most of their parts, and last.

    What it says of parts may be of no importance for the nodes as a whole.
    """
    ours, theirs = set(one.node.parts), set(other.node.parts)
    best = _Refusal(frozenset(), frozenset(), str)
    for said in one.graph.refusals.values():
        between = (said.ours <= ours and said.theirs <= theirs) or (
            said.ours <= theirs and said.theirs <= ours
        )
        if between and len(said.ours) + len(said.theirs) >= len(best.ours) + len(best.theirs):
            best = said
    return " ".join(best.reason().split())[:LONGEST_REASON]
