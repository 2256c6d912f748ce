"""Stops Inductor where it would load the code, and tells what it has written, torch 2.4 to 2.15."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch._inductor.compile_fx
import torch._inductor.constant_folding
import torch._inductor.cudagraph_trees
import torch._inductor.fx_passes.pad_mm
import torch._inductor.graph
import torch._inductor.scheduler
import torch._inductor.select_algorithm
from torch._inductor.codegen import wrapper as _wrapper
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.ir import MultiOutput, UserDefinedTritonKernel
from torch._inductor.scheduler import (
    ExternKernelSchedulerNode,
    NopKernelSchedulerNode,
    Scheduler,
)
from torch.utils._pytree import tree_leaves, tree_map

from ... import failures
from ..notes import Node, Notes
from . import own_kernel


def _node(node: Any) -> Node:
    parts = list(getattr(node, "snodes", None) or [node])
    operators: dict[str, None] = {}
    for part in parts:
        for origin in getattr(getattr(part, "node", None), "origins", None) or ():
            if origin.op == "call_function":
                operators[str(origin.target)] = None
    return Node(
        tuple(part.get_name() for part in parts),
        frozenset(read.name for read in node.read_writes.reads),
        frozenset(write.name for write in node.read_writes.writes),
        isinstance(node, ExternKernelSchedulerNode)
        and not isinstance(node.node, UserDefinedTritonKernel),
        sum(part.get_read_write_buffers_sizes() for part in parts),
        node.get_read_write_buffers_sizes(),
        tuple(sorted(operators)),
    )


def _works(node: Any) -> bool:
    """Whether a node of the scheduler launches anything.

    Taking one of several outputs of a library's call is no call of its own.
    """
    if isinstance(node, NopKernelSchedulerNode):
        return False
    return not (isinstance(node, ExternKernelSchedulerNode) and isinstance(node.node, MultiOutput))


@contextlib.contextmanager
def watching(notes: Notes) -> Iterator[None]:
    """A context in which Inductor generates code without loading it, and tells ``notes``.

    What a release lacks is left out: CUDA graphs of parts of a graph came with 2.7.
    """
    wrapper = getattr(_wrapper, "PythonWrapperCodegen", None) or _wrapper.WrapperCodeGen
    with contextlib.ExitStack() as stack:

        def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
            stack.enter_context(mock.patch.object(owner, name, make(getattr(owner, name))))

        def nodes(scheduler: Any, *_: Any, **__: Any) -> None:
            notes.nodes([_node(node) for node in scheduler.nodes if _works(node)])

        def source(_: Any, *arguments: Any, **options: Any) -> None:
            name, body = [*arguments, *options.values()][:2]
            notes.source(name, body)

        def launch(writer: Any, *arguments: Any, **options: Any) -> None:
            name = [*arguments, *options.values()][0]
            if not own_kernel(writer, name):
                notes.launched(name)

        def begin(*_: Any, **options: Any) -> None:
            notes.begun(bool(options.get("is_backward")))

        replace(torch._inductor.graph.GraphLowering, "compile_to_module", _stopping(notes))
        replace(Scheduler, "codegen", _before(nodes))
        replace(TritonScheduling, "define_kernel", _noting_kernel(notes))
        replace(wrapper, "define_kernel", _before(source))
        replace(wrapper, "define_user_defined_triton_kernel", _noting_own_kernel(notes))
        replace(wrapper, "generate_kernel_call", _before(launch))
        replace(torch._inductor.scheduler.WhyNoFuse, "__call__", _noting_reason(notes))
        if hasattr(Scheduler, "graph_partition"):
            replace(Scheduler, "graph_partition", _noting_partition(notes))
        replace(torch._inductor.compile_fx, "compile_fx_inner", _before(begin))
        replace(torch._inductor.compile_fx, "cudagraphify", _noting_cuda_graph(notes))
        replace(torch._inductor.cudagraph_trees, "get_manager", lambda _: _no_manager)
        replace(torch._inductor.select_algorithm.AlgorithmSelectorCache, "__call__", _refusing)
        pad_mm = torch._inductor.fx_passes.pad_mm
        # The names of the function that times a padded product: 2.15, 2.9, 2.4.
        name = next(
            name
            for name in ("_should_pad", "_should_pad_bench", "should_pad_bench")
            if hasattr(pad_mm, name)
        )
        replace(pad_mm, name, _assuming_no_padding(notes))
        replace(torch._inductor.constant_folding.ConstantFolder, "run_node", _folding_here)
        yield


def _no_manager(*_: Any, **__: Any) -> Any:
    """In place of the manager of CUDA graphs: it is asked for, and not used."""
    return SimpleNamespace(set_to_running_backward=lambda: None)


def _stopping(notes: Notes) -> Callable[[Any], Any]:
    def make(_: Any) -> Any:
        def compile_to_module(graph: Any, *_: Any, **__: Any) -> Any:
            generated = graph.codegen()[0]
            notes.code(generated if isinstance(generated, str) else generated.value)
            return _Module()

        return compile_to_module

    return make


class _Module:
    """In place of the generated module. Nothing ever calls it."""

    __file__ = None

    def __init__(self) -> None:
        self.runner = self
        self.partitions: list[Any] = []

    def call(self, _: Any) -> Any:
        raise RuntimeError("code for a GPU that is not here cannot run")

    def recursively_apply_fns(self, functions: Iterable[Callable[[Any], Any]]) -> None:
        """Wrap each part of a divided graph, as the generated module does."""
        for function in functions:
            function(self.call)


def _before(tell: Callable[..., None]) -> Callable[[Any], Any]:
    """A function that calls ``tell`` with its arguments, and then does what it did."""

    def make(function: Any) -> Any:
        def told(*arguments: Any, **options: Any) -> Any:
            tell(*arguments, **options)
            return function(*arguments, **options)

        return told

    return make


def _noting_kernel(notes: Notes) -> Callable[[Any], Any]:
    def make(method: Any) -> Any:
        def define_kernel(
            self: Any, source: Any, nodes: Any, *arguments: Any, **options: Any
        ) -> Any:
            name = method(self, source, nodes, *arguments, **options)
            parts = [
                part.get_name()
                for node in nodes
                if hasattr(node, "get_name")
                for part in getattr(node, "snodes", None) or [node]
            ]
            notes.kernel(str(name), parts)
            return name

        return define_kernel

    return make


def _noting_own_kernel(notes: Notes) -> Callable[[Any], Any]:
    """Inductor asks for the kernel's name once for each call that it writes."""

    def make(method: Any) -> Any:
        def define_user_defined_triton_kernel(self: Any, *arguments: Any, **options: Any) -> Any:
            known = method(self, *arguments, **options)
            notes.kernel(known[0], [])
            notes.launched(known[0])
            return known

        return define_user_defined_triton_kernel

    return make


def _noting_reason(notes: Notes) -> Callable[[Any], Any]:
    def make(_: Any) -> Any:
        def call(why: Any, reason: str, *arguments: Any) -> None:
            # Since 2.5 the object has the names, because the nodes would stay alive.
            one = why.name1 if hasattr(why, "name1") else why.node1.get_name()
            other = why.name2 if hasattr(why, "name2") else why.node2.get_name()
            notes.not_fused(one, other, lambda: reason % arguments if arguments else reason)

        return call

    return make


def _noting_partition(notes: Notes) -> Callable[[Any], Any]:
    def make(method: Any) -> Any:
        def graph_partition(scheduler: Any) -> Any:
            partitions, signatures = method(scheduler)
            parts = [
                (sum(map(_works, nodes)), not signature.skip_cudagraph)
                for nodes, signature in zip(partitions, signatures, strict=True)
            ]
            notes.partitioned(
                sum(works for works, graph in parts if not graph),
                [works for works, graph in parts if graph],
            )
            return partitions, signatures

        return graph_partition

    return make


def _noting_cuda_graph(notes: Notes) -> Callable[[Any], Any]:
    def make(_: Any) -> Any:
        def cudagraphify(model: Any, *_: Any, **given: Any) -> Any:
            reason = _changed_inputs(**given)
            if reason:
                torch._inductor.cudagraph_utils.log_cudagraph_skip_and_bump_counter(reason)
                notes.assume(
                    "an input that a graph changes in place is no output of another CUDA graph"
                )
            notes.cuda_graph(skipped=bool(reason))
            return model

        return cudagraphify

    return make


def _changed_inputs(
    static_input_idxs: Iterable[int],
    mutated_input_idxs: Iterable[int],
    placeholders: Any,
    is_backward: bool,
    **_: Any,
) -> str | None:
    """What torch says at a call of a graph that changes its inputs in place; None if it does not.

    Newer releases ask at the first call, because an input from another CUDA graph may change. What
    the backward pass gets is the forward pass's.
    """
    return torch._inductor.cudagraph_utils.check_for_mutation(  # type: ignore[no-any-return]
        SimpleNamespace(
            static_input_idxs=static_input_idxs,
            mutated_input_idxs=mutated_input_idxs,
            placeholders=placeholders,
        ),
        dict.fromkeys(mutated_input_idxs),
        lambda _: is_backward,
    )


def _refusing(method: Any) -> Any:
    def select(self: Any, name: str, choices: Any, *arguments: Any, **options: Any) -> Any:
        candidates = [choice for choice in choices if choice is not None]
        if len(candidates) > 1:
            raise failures.Unsupported(
                f"this mode times {len(candidates)} candidates for {name} on the device and takes "
                "the fastest, so its code is not known without the device"
            )
        return method(self, name, choices, *arguments, **options)

    return select


def _folding_here(method: Any) -> Any:
    """Constants are computed on the CPU: torch computes them with real tensors."""

    def there(value: Any) -> bool:
        return isinstance(value, torch.device) and value.type == "cuda"

    def here(value: Any) -> Any:
        return torch.device("cpu") if there(value) else value

    def run_node(self: Any, node: Any) -> Any:
        arguments, options = node.args, node.kwargs
        if not any(map(there, tree_leaves((arguments, options)))):
            return method(self, node)
        node.args, node.kwargs = tree_map(here, arguments), tree_map(here, options)
        try:
            return method(self, node)
        finally:
            node.args, node.kwargs = arguments, options

    return run_node


def _assuming_no_padding(notes: Notes) -> Callable[[Any], Any]:
    def make(function: Any) -> Any:
        def should_pad(*arguments: Any, **options: Any) -> bool:
            try:
                return bool(function(*arguments, **options))
            except (RuntimeError, AssertionError):
                notes.assume(
                    "Inductor times a matrix product with and without padding: taken as not padded"
                )
                return False

        return should_pad

    return make
