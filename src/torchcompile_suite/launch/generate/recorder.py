"""Counts what Inductor writes, for the forward and for the backward pass."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from ...generated import Chain, Code, Kernel
from .assembly import Assembled, Place, Source

FORWARD, BACKWARD = "forward", "backward"
# Chains that are kept of each pass, and the kernels of a chain and the operators of a kernel that
# are named.
MOST_CHAINS = 3
MOST_KERNELS = 12
MOST_OPERATORS = 24
# Of a reason: torch's messages may print whole sets of dependencies.
LONGEST_REASON = 200
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


# A name, and the number of the graph that it belongs to.
InGraph = tuple[int, str]


class _Refusal(NamedTuple):
    """The scheduler did not fuse two nodes: the parts of each, and when and why it said so."""

    number: int
    ours: frozenset[str]
    theirs: frozenset[str]
    reason: Callable[[], str]

    @property
    def weight(self) -> tuple[int, int]:
        """What it says of parts may be of no importance for the nodes as a whole."""
        return len(self.ours) + len(self.theirs), self.number


class _Pass:
    """What was written for one direction."""

    def __init__(self) -> None:
        # Inductor numbers the kernels of each graph anew: a kernel is a graph and a name.
        self.nodes: list[Node] = []
        self.triton: dict[InGraph, list[str]] = {}  # a kernel: its nodes
        self.launches: Counter[InGraph] = Counter()
        self.sources: dict[InGraph, str] = {}
        self.kernel_of: dict[InGraph, str] = {}  # a node: its kernel
        self.graph_of: list[int] = []  # for each of `nodes`
        # By a part of the first node, then by the names of both nodes: the last refusal.
        self.refusals: dict[InGraph, dict[tuple[str, str], _Refusal]] = {}
        self.refused = 0
        self.cuda_graphs = 0
        self.outside = 0
        self.code: list[str] = []
        self.graphs = 0


class Recorder:
    """What Inductor wrote for one cell: `hooks.watching` tells it, one graph after another."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._passes: dict[str, _Pass] = {}
        self._now = _Pass()
        self._divided = 0
        self._inside: list[int] = []
        self._became = False
        self._graph_launches = 0
        self.assumed: dict[str, None] = {}

    def begun(self, backward: bool) -> None:
        """A graph is compiled from now on."""
        self._finish_graph()
        self._now = self._passes.setdefault(BACKWARD if backward else FORWARD, _Pass())
        self._now.graphs += 1

    def _finish_graph(self) -> None:
        """Count the launches of the last graph that are in no CUDA graph."""
        self._now.outside += self._divided if self._became else self._graph_launches
        self._divided, self._inside, self._became, self._graph_launches = 0, [], False, 0

    def nodes(self, nodes: list[Node]) -> None:
        """The scheduler's nodes, after fusion and before code generation."""
        self._now.nodes += nodes
        self._now.graph_of += [self._now.graphs] * len(nodes)
        self._graph_launches += sum(node.library for node in nodes)

    def not_fused(self, one: str, other: str, reason: Callable[[], str]) -> None:
        """The scheduler did not fuse two nodes. ``reason`` makes the text."""
        # The name of a fused node is that of its parts, joined.
        ours, theirs = frozenset(one.split("_")), frozenset(other.split("_"))
        pairs = self._now.refusals.setdefault((self._now.graphs, min(ours)), {})
        self._now.refused += 1
        pairs[one, other] = _Refusal(self._now.refused, ours, theirs, reason)

    def kernel(self, name: str, parts: Sequence[str]) -> None:
        """A Triton kernel holds these nodes. May come again for the same kernel."""
        self._now.triton[self._now.graphs, name] = list(parts)
        for part in parts:
            self._now.kernel_of[self._now.graphs, part] = name

    def source(self, name: str, code: str) -> None:
        """A kernel's source, as a Python expression of the generated module."""
        self._now.sources[self._now.graphs, name] = code

    def launched(self, name: str) -> None:
        """The generated code launches a generated kernel once."""
        self._now.launches[self._now.graphs, name] += 1
        self._graph_launches += 1

    def partitioned(self, nodes_outside: int, inside: list[int]) -> None:
        """The graph is divided for CUDA graphs. ``nodes_outside``: launches in none of them;
        ``inside``: launches in each.
        """
        self._divided, self._inside = nodes_outside, list(inside)

    def cuda_graph(self, skipped: bool) -> None:
        """A graph, or its next part, becomes a CUDA graph, or ``skipped``: torch will not."""
        launches = self._inside.pop(0) if self._inside else 0
        if skipped:
            self._divided += launches
        else:
            self._now.cuda_graphs += 1
            self._became = True

    def code(self, text: str) -> None:
        """The graph's generated module."""
        self._now.code.append(_OF_THE_PROCESS.sub("", text))

    def assume(self, text: str) -> None:
        """A question that only a device can answer, and the answer that was assumed."""
        self.assumed[text] = None

    def sources(self) -> Iterator[Source]:
        """The source of each Triton kernel."""
        for direction, written in self._passes.items():
            for graph, name in written.triton:
                if (graph, name) in written.sources:
                    place = Place(direction, graph, name)
                    yield Source(place, written.sources[graph, name])

    def modules(self) -> dict[str, list[str]]:
        """The generated modules by pass."""
        return {direction: written.code for direction, written in self._passes.items()}

    def result(
        self, with_cuda_graphs: bool, assembled: Mapping[Place, Assembled]
    ) -> tuple[Code, Code | None]:
        """The code of the forward pass, and of the backward pass if there is one.

        ``with_cuda_graphs``: the mode uses them.
        """
        self._finish_graph()
        self._now = _Pass()
        self._passes.setdefault(FORWARD, _Pass())
        codes = {
            direction: _code(written, direction, assembled)
            for direction, written in self._passes.items()
        }
        if not with_cuda_graphs:
            codes = {
                direction: msgspec.structs.replace(code, cuda_graphs=None, outside_launches=None)
                for direction, code in codes.items()
            }
        return codes[FORWARD], codes.get(BACKWARD)


def _code(written: _Pass, direction: str, assembled: Mapping[Place, Assembled]) -> Code:
    triton = sum(count for kernel, count in written.launches.items() if kernel in written.triton)
    text = "\n".join(written.code)
    operators = _operators(written)
    kernels = [
        Kernel(
            name=name,
            launches=written.launches[graph, name],
            operators=operators.get((graph, name), [])[:MOST_OPERATORS],
            **_sizes(assembled.get(Place(direction, graph, name))),
        )
        for graph, name in written.triton
    ]
    return Code(
        triton_kernels=len(written.triton),
        triton_launches=triton,
        library_launches=sum(node.library for node in written.nodes),
        host_launches=written.launches.total() - triton,
        nodes_before=sum(len(node.parts) for node in written.nodes),
        nodes_after=len(written.nodes),
        bytes_before=sum(node.bytes_before for node in written.nodes),
        bytes_after=sum(node.bytes_after for node in written.nodes),
        cuda_graphs=written.cuda_graphs,
        outside_launches=written.outside,
        source_lines=len(text.splitlines()),
        source_sha256=hashlib.sha256(text.encode()).hexdigest(),
        kernels=kernels,
        chains=_chains(written),
    )


def _sizes(assembled: Assembled | None) -> dict[str, Any]:
    """The fields of a `Kernel` that the assembler decides; none if it was not assembled."""
    return {} if assembled is None else assembled._asdict()


def _kernel(written: _Pass, at: int) -> str:
    """The Triton kernel of a node; empty for a call of a library."""
    graph = written.graph_of[at]
    for part in written.nodes[at].parts:
        if name := written.kernel_of.get((graph, part)):
            return name
    return ""


def _operators(written: _Pass) -> dict[InGraph, list[str]]:
    """The ATen operators of each Triton kernel."""
    found: dict[InGraph, dict[str, None]] = {}
    for at, node in enumerate(written.nodes):
        if name := _kernel(written, at):
            kernel = written.graph_of[at], name
            found.setdefault(kernel, {}).update(dict.fromkeys(node.operators))
    return {kernel: sorted(operators) for kernel, operators in found.items()}


def _chains(written: _Pass) -> list[Chain]:
    """The longest chains of Triton kernels of which each reads what the one before wrote.

    A call of a library ends a chain. Each kernel launch is in at most one of the chains.
    """
    before: list[int | None] = []  # the node before, in the longest chain that ends here
    length: list[int] = []
    writer: dict[tuple[int, str], int] = {}
    for at, node in enumerate(written.nodes):
        graph = written.graph_of[at]
        producers = {writer[graph, name] for name in node.reads if (graph, name) in writer} - {at}
        best: int | None = None
        if _kernel(written, at):
            ends = [one for one in producers if length[one]]
            best = max(ends, key=lambda one: (length[one], one), default=None)
        before.append(best)
        length.append(0 if not _kernel(written, at) else 1 + (0 if best is None else length[best]))
        for name in node.writes:
            writer[graph, name] = at
    chains: list[Chain] = []
    taken: set[int] = set()
    for end in sorted(range(len(length)), key=lambda at: (-length[at], at)):
        chain: list[int] = []
        link: int | None = end
        while link is not None and link not in taken:
            chain.append(link)
            link = before[link]
        if len(chain) < 2 or len(chains) == MOST_CHAINS:
            continue
        taken.update(chain)
        chain.reverse()
        named = chain[:MOST_KERNELS]
        chains.append(
            Chain(
                [_kernel(written, one) for one in named],
                [_reason(written, one, other) for one, other in pairwise(named)],
            )
        )
    return sorted(chains, key=lambda chain: -len(chain.kernels))


def _reason(written: _Pass, one: int, other: int) -> str:
    """Why Inductor did not fuse two nodes: what it said of most of their parts, and last."""
    graph = written.graph_of[one]
    ours, theirs = set(written.nodes[one].parts), set(written.nodes[other].parts)
    best = _Refusal(0, frozenset(), frozenset(), str)
    for part in ours | theirs:
        for said in written.refusals.get((graph, part), {}).values():
            between = (said.ours <= ours and said.theirs <= theirs) or (
                said.ours <= theirs and said.theirs <= ours
            )
            if between and said.weight > best.weight:
                best = said
    return " ".join(best.reason().split())[:LONGEST_REASON]
