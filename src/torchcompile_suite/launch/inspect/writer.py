"""Marks in the code that Inductor generates: before and after each kernel (`marks`)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch._inductor.virtualized
from torch._inductor import compile_fx
from torch._inductor.scheduler import Scheduler

from ...attribution import Direction, Kind, Operator
from . import dynamo, inductor, marks
from .marks import Marked, described

# The number of the argument that is weights, by operator.
_WEIGHTS = {"convolution": 1, "addmm": 2}


class Writer:
    """Writes the marks into the code that Inductor generates.

    ``code``: the source of each kernel, by ``graph/name``.
    """

    def __init__(self) -> None:
        """Nothing is generated yet."""
        self._written: list[_Written] = []
        self.code: dict[str, str] = {}
        self._graphs = self._graph = self._depth = 0
        self._backward = False
        # By the number that autograd's graph has for both passes of an operator.
        self._of_number: dict[Hashable, Operator] = {}
        self._defined: dict[str, list[Any]] = {}
        self._inside = False
        self._last = ""  # the kernel that was defined last

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A context in which all code is generated anew, with marks.

        What it compiles is apart from what was compiled before, for the rest of the process: two
        calls of torch.compile with equal settings would else share it.
        """
        from torch._inductor.codegen.triton import TritonScheduling

        torch._TorchCompileInductorWrapper.__eq__ = object.__eq__
        hooks: list[tuple[Any, str, dynamo.Hook]] = [
            # In 2.4 it is this function that tells two backends apart.
            (compile_fx, "compile_fx", lambda original, *given, **named: original(*given, **named)),
            (Scheduler, "codegen", self._count),
            (Scheduler, "codegen_extern_call", self._library),
            (inductor.WRAPPER, "write_header", _import),
            (inductor.WRAPPER, "generate_kernel_call", self._kernel),
        ]
        if hasattr(TritonScheduling, "_codegen_mix_order_reduction"):  # since 2.10
            hooks.append((TritonScheduling, "_codegen_mix_order_reduction", self._mixed))
        with (
            dynamo.hooking(hooks),
            inductor.watch_sources(self._define),
            inductor.generating_anew(),
        ):
            yield

    def _count(self, original: Any, *arguments: Any, **options: Any) -> Any:
        if inductor.is_candidate():
            return original(*arguments, **options)
        # The code of a subgraph is generated inside that of its graph.
        around = self._graph, self._backward
        self._graphs += 1
        self._graph = self._graphs
        self._depth += 1
        nodes = torch._inductor.virtualized.V.graph.module.graph.nodes
        self._backward = any(
            node.op == "placeholder" and str(node.target).startswith("tangents_") for node in nodes
        )
        if not self._backward:
            for node in nodes:
                if node.op == "call_function" and (name := _source(node)):
                    self._of_number.setdefault(_number(node), described(node, name))
        if self._depth == 1:
            torch._inductor.virtualized.V.graph.wrapper_code.writeline(f"mark({marks.BEGIN})")
        try:
            return original(*arguments, **options)
        finally:
            self._depth -= 1
            if self._depth:
                self._graph, self._backward = around

    def _operators(self, origins: Iterable[Any]) -> list[Operator]:
        """The operators that nodes of the graph for Inductor come from."""
        found: dict[Operator, None] = {}
        unnamed: dict[Operator, None] = {}
        for origin in origins:
            name = _source(origin)
            if name:
                found[described(origin, name)] = None
            elif known := self._of_number.get(_number(origin)):
                found[known] = None
            else:  # such as the copy at the end that changes a buffer of the model
                unnamed[described(origin)] = None
        return list(found or unnamed)

    def _define(self, kernel: str, nodes: Any, source: str) -> None:
        self._last = kernel
        self._defined[kernel] = list(nodes)
        self.code[f"{self._graph}/{kernel}"] = source

    def _kernel(self, original: Any, writer: Any, name: str, *others: Any, **options: Any) -> Any:
        nodes = self._defined.get(name)
        if nodes is None or inductor.is_candidate():
            return original(writer, name, *others, **options)
        return self._around(
            writer, name, False, nodes, lambda: original(writer, name, *others, **options)
        )

    def _mixed(self, original: Any, scheduling: Any, one: Any, other: Any) -> Any:
        """Two reductions in one kernel, which sums in ATen end: these belong to its step."""
        if self._inside or inductor.is_candidate():  # 2.10 calls it again with the nodes swapped
            return original(scheduling, one, other)
        writer = torch._inductor.virtualized.V.graph.wrapper_code
        step = len(self._written)
        done = self._around(
            writer, "", False, [one, other], lambda: original(scheduling, one, other)
        )
        self._written[step] = self._written[step]._replace(name=self._last)
        return done

    def _library(self, original: Any, scheduler: Any, node: Any, *others: Any) -> Any:
        if inductor.is_candidate():
            return original(scheduler, node, *others)
        name = getattr(node.node, "python_kernel_name", None) or type(node.node).__name__
        name = str(name).removeprefix("extern_kernels.").removeprefix("torch.ops.")
        # The buffer for the result is made before `codegen` is called: it is between the steps, as
        # that of a generated kernel is. In old releases the scheduler's node has no such function.
        owner = node if hasattr(node, "codegen") else node.node

        def call(codegen: Any, writer: Any) -> Any:
            return self._around(writer, name, True, [node], lambda: codegen(writer))

        with dynamo.hooking([(owner, "codegen", call)]):
            return original(scheduler, node, *others)

    def _around(
        self, writer: Any, name: str, library: bool, nodes: list[Any], write: Callable[[], Any]
    ) -> Any:
        if self._inside:  # a library call of some releases is a kernel call as well
            return write()
        number = 2 * len(self._written)
        parts = [part for node in nodes for part in inductor.parts_of(node)]
        origins = [sorted(inductor.origins([part]), key=_place) for part in parts]
        named = [each for each in zip(origins, parts, strict=True) if each[0]]
        self._written.append(
            _Written(
                name,
                library,
                self._graph,
                self._backward,
                [own for own, _ in named],
                [None if library else _copied(own[-1], part) for own, part in named],
            )
        )
        self._inside = True
        try:
            writer.writeline(f"mark({number})")
            written = write()
            writer.writeline(f"mark({number + 1})")
        finally:
            self._inside = False
        return written

    def resolved(self, known: Iterable[Operator]) -> list[Marked]:
        """The steps, each operator in the step that computes it.

        The kernel of operators before a library's call may write the layout that the library wants,
        and so names the library's operator, too. ``known``: the operators as the captured graphs
        have them; here they are named after what they were decomposed into.
        """
        of_graph = {_key(each): each for each in known}

        def operators(nodes: Iterable[Any]) -> list[Operator]:
            found = self._operators(nodes)
            return list(dict.fromkeys(of_graph.get(_key(each), each) for each in found))

        nodes = {step.origins[0][-1] for step in self._written if step.library and step.origins}
        computed = {
            (operator, step.backward)
            for step in self._written
            if step.library
            for operator in operators(origins[-1] for origins in step.origins)
        }
        return [step.marked(operators, nodes, computed) for step in self._written]


class _Written(NamedTuple):
    """A step as it was written.

    ``origins``: of each part of it the nodes of the graph for Inductor, in their order.
    ``copied``: of each part the number of the argument of its last node that it only copies.
    """

    name: str
    library: bool
    graph: int
    backward: bool
    origins: list[list[Any]]
    copied: list[int | None]

    def marked(
        self,
        operators: Callable[[Iterable[Any]], list[Operator]],
        of_libraries: set[Any],
        computed: set[tuple[Operator, bool]],
    ) -> Marked:
        """The step with its operators. ``of_libraries`` and ``computed``: what libraries compute,
        as nodes and as operators of a direction.
        """
        kind: Kind = "library" if self.library else "generated"
        computes, serves, weights = [], [], False
        for origins, copied in zip(self.origins, self.copied, strict=True):
            if self.library:
                # The nodes that its inputs come from are among them: it computes the last one.
                computes.append(origins[-1])
            elif copied is not None and origins[-1] in of_libraries:
                serves.append(origins[-1])
                weights = weights or copied == _weights_of(origins[-1])
            elif own := [origin for origin in origins if origin not in of_libraries]:
                computes += own
            else:
                serves += origins
        found = operators(computes)
        if not self.library:
            others = [each for each in found if (each, self.backward) not in computed]
            found = others or found
        if not found and serves:
            found, kind = operators(serves), "copy"
        direction: Direction = "backward" if self.backward else "forward"
        # In a backward pass the argument is what the forward pass has saved.
        weights = weights and not self.backward
        return Marked(self.name, kind, found, self.graph, direction, weights)


def _number(node: Any) -> Hashable:
    """Equal for a node of the forward pass and those of its backward pass."""
    return node.meta.get("seq_nr", node), node.meta.get("stack_trace")


def _key(one: Operator) -> tuple[str, str, str]:
    return one.name, one.module, one.where


def _import(original: Any, writer: Any) -> Any:
    written = original(writer)
    writer.header.writeline(f"from {marks.__name__} import mark")
    return written


def _weights_of(origin: Any) -> int | None:
    """The number of the argument that is weights; None where nothing says so."""
    return _WEIGHTS.get(str(origin.target).removeprefix("aten.").partition(".")[0])


def _copied(origin: Any, part: Any) -> int | None:
    """Which of its inputs a node gets in another layout from that part of a kernel, which reads
    nothing else; None if the part computes.
    """
    read = {read.name for read in part.read_writes.reads}
    for at, value in enumerate(origin.args):
        if getattr(value, "op", "") == "placeholder" and read == {value.target}:
            return at
    return None


def _place(origin: Any) -> int:
    """The place of a node in its graph."""
    return _places(origin.graph)[origin]


@functools.cache
def _places(graph: torch.fx.Graph) -> dict[Any, int]:
    """The places of all nodes. No graph changes while its code is generated."""
    return {node: at for at, node in enumerate(graph.nodes)}


def _source(origin: Any) -> str:
    """The name of the node that Dynamo captured, of a node of the graph for Inductor."""
    sources = origin.meta.get("from_node")
    # In 2.4 a tuple of name and target.
    return str(getattr(sources[0], "name", None) or sources[0][0]) if sources else ""
