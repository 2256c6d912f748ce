"""Where in the user's source the compiler did what it did, in torch 2.4 to 2.15."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
import torch._dynamo.config
import torch._dynamo.output_graph
import torch._dynamo.utils
from torch._inductor.graph import GraphLowering

from ...compiled import GraphBreak
from . import dynamo, inductor
from .dynamo import hooking


class Frame(NamedTuple):
    """A line of a call stack: the whole path of the file, the line, and the function's name."""

    file: str
    line: int
    function: str


class Operator(NamedTuple):
    """An ATen operator of a graph that Inductor compiles.

    ``elements``: of its result; 0 if a size is symbolic. ``stack``: outermost call first.
    """

    name: str
    dtype: str
    device: str
    elements: int
    stack: list[Frame]


def breaks() -> Iterator[tuple[GraphBreak, list[Frame]]]:
    """All graph breaks, each with its stack. The same break may come several times."""
    for dynamos in torch._dynamo.output_graph.graph_break_reasons:
        yield dynamo.graph_break(dynamos), stack_of(dynamos.user_stack or ())


def stack_of(frames: Iterable[Any]) -> list[Frame]:
    """The frames of a stack of Dynamo's."""
    return [Frame(each.filename, each.lineno, each.name) for each in frames]


def captured() -> list[Frame]:
    """The first line of each function that was captured, once for each capture."""
    return [
        Frame(str(each.co_filename), int(each.co_firstlineno), str(each.co_name))
        for each in dynamo.frames()
    ]


@contextlib.contextmanager
def watch_operators() -> Iterator[list[Operator]]:
    """A context with a list to which each graph that Inductor compiles adds its operators.

    Views are left out: they cost nothing. In all releases ``run`` gets the whole graph.
    """
    found: list[Operator] = []

    def note(original: Any, graph: Any, *arguments: Any) -> Any:
        if not inductor.is_candidate():
            found.extend(_operators(graph.module.graph.nodes))
        return original(graph, *arguments)

    with hooking([(GraphLowering, "run", note)]):
        yield found


def _operators(nodes: Iterable[Any]) -> Iterator[Operator]:
    for node in nodes:
        target = node.target
        if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
            continue
        values = node.meta.get("val")
        value = values[0] if isinstance(values, (tuple, list)) and values else values
        if target.is_view or not isinstance(value, torch.Tensor):
            continue
        name = target._schema.name.removeprefix("aten::").removeprefix("prims::")
        sizes = list(value.shape)
        fixed = all(isinstance(size, int) for size in sizes)
        stack = dynamo.FRAME.finditer(node.meta.get("stack_trace") or "")
        yield Operator(
            name,
            str(value.dtype).removeprefix("torch."),
            value.device.type,
            value.numel() if fixed else 0,
            [Frame(each["filename"], int(each["lineno"]), "") for each in stack],
        )


def building_nothing() -> AbstractContextManager[None]:
    """A context in which Inductor writes the code of a graph for the CPU, and does not build it.

    A call runs the graph's operators in eager instead. The counts are the same, without a C++
    compiler and the seconds that it takes for each graph. Code for a GPU is built: CUDA graphs are
    made of it.
    """

    def write(original: Any, graph: Any, *arguments: Any, **options: Any) -> Any:
        if set(graph.device_types) - {"cpu", "meta"} or graph.cpp_wrapper:
            return original(graph, *arguments, **options)
        graph.codegen()
        return _InEager(graph.module)

    return hooking([(GraphLowering, "compile_to_module", write)])


class _InEager:
    """In place of the module that Inductor generates."""

    __file__ = None

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self._graph = graph

    def call(self, inputs: list[Any]) -> Any:
        """The graph's outputs. Takes the inputs out of the list, as generated code does."""
        given = list(inputs)
        inputs.clear()
        with torch.no_grad():
            return torch.fx.Interpreter(self._graph).run(*given)


@contextlib.contextmanager
def everything_compiled() -> Iterator[None]:
    """A context in which nothing that was compiled before changes a count.

    Equal graphs do not share their code, and no profile of an earlier run makes a size dynamic.
    """
    off = {"automatic_dynamic_local_pgo": False, "automatic_dynamic_remote_pgo": False}
    known = {name: value for name, value in off.items() if hasattr(torch._dynamo.config, name)}
    with inductor.generating_anew(), torch._dynamo.config.patch(known):
        yield
