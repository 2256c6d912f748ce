"""A graph's way through AOTAutograd and Inductor, for a GPU that is not here, torch 2.4 to 2.15.

`compile_graph` sends it there without calling it. Meanwhile `watching` stops Inductor where it
would load the code, and tells the recorder what it has written.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo.backends.common
import torch._guards
import torch._inductor.compile_fx
import torch._inductor.constant_folding
import torch._inductor.cudagraph_trees
import torch._inductor.fx_passes.pad_mm
import torch._inductor.graph
import torch._inductor.scheduler
import torch._inductor.select_algorithm
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.ir import UserDefinedTritonKernel
from torch._inductor.scheduler import ExternKernelSchedulerNode, Scheduler
from torch.utils._pytree import tree_leaves, tree_map

from .. import failures
from ..inspect.dynamo import Hook, hooking
from ..inspect.inductor import WRAPPER, holds_graph, origins, own_kernel, parts_of, works
from .recorder import Node, Recorder

# AOTAutograd.
_AOT = "torch._functorch._aot_autograd"


def watching(recorder: Recorder) -> contextlib.AbstractContextManager[None]:
    """A context in which Inductor generates code without loading it, and tells the recorder.

    What a release lacks is left out: CUDA graphs of parts of a graph came with 2.7.
    """
    hooks = _Hooks(recorder)
    inductor = torch._inductor
    pad_mm = inductor.fx_passes.pad_mm
    # The names of the function that times a padded product: 2.15, 2.9, 2.4.
    pads = ("_should_pad", "_should_pad_bench", "should_pad_bench")
    replaced: list[tuple[Any, str, Hook]] = [
        (inductor.graph.GraphLowering, "compile_to_module", hooks.stop),
        (inductor.graph.GraphLowering, "constant_name", _keep_here),
        (Scheduler, "codegen", hooks.nodes),
        (TritonScheduling, "define_kernel", hooks.kernel),
        (WRAPPER, "define_kernel", hooks.source),
        (WRAPPER, "define_user_defined_triton_kernel", hooks.own_kernel),
        (WRAPPER, "generate_kernel_call", hooks.launch),
        (inductor.scheduler.WhyNoFuse, "__call__", hooks.not_fused),
        (inductor.compile_fx, "compile_fx_inner", hooks.begin),
        (inductor.compile_fx, "cudagraphify", hooks.cuda_graph),
        (inductor.cudagraph_trees, "get_manager", _no_manager),
        (inductor.select_algorithm.AlgorithmSelectorCache, "__call__", _refuse_choice),
        (pad_mm, next(name for name in pads if hasattr(pad_mm, name)), hooks.pad),
        (inductor.constant_folding.ConstantFolder, "run_node", _fold_here),
    ]
    for owner, name, hook in (
        (Scheduler, "graph_partition", hooks.partition),
        (TritonScheduling, "_codegen_mix_order_reduction", hooks.mixed),  # since 2.10
    ):
        if hasattr(owner, name):
            replaced.append((owner, name, hook))
    return hooking(replaced)


class _Hooks:
    """What runs in place of Inductor's functions. The first argument is the original."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def stop(self, _: Any, graph: Any, *__: Any, **___: Any) -> Any:
        generated = graph.codegen()[0]
        self.recorder.code(generated if isinstance(generated, str) else generated.value)
        return _Module()

    def begin(self, original: Any, *arguments: Any, **options: Any) -> Any:
        self.recorder.begun(bool(options.get("is_backward")))
        return original(*arguments, **options)

    def nodes(self, original: Any, scheduler: Any, *arguments: Any, **options: Any) -> Any:
        if any(map(holds_graph, scheduler.nodes)):
            self.recorder.assume(
                "the launches of graphs inside of a graph, of all branches, are counted once"
            )
        self.recorder.nodes([_node(node) for node in scheduler.nodes if works(node)])
        return original(scheduler, *arguments, **options)

    def kernel(
        self, original: Any, scheduling: Any, source: Any, nodes: Any, *others: Any, **options: Any
    ) -> Any:
        name = original(scheduling, source, nodes, *others, **options)
        named = [node for node in nodes if hasattr(node, "get_name")]
        parts = [part.get_name() for node in named for part in parts_of(node)]
        self.recorder.kernel(str(name), parts)
        return name

    def source(self, original: Any, writer: Any, *arguments: Any, **options: Any) -> Any:
        name, body = [*arguments, *options.values()][:2]
        self.recorder.source(name, body)
        return original(writer, *arguments, **options)

    def own_kernel(self, original: Any, writer: Any, *arguments: Any, **options: Any) -> Any:
        """Inductor asks for the kernel's name once for each call that it writes."""
        known = original(writer, *arguments, **options)
        self.recorder.kernel(known[0], [])
        self.recorder.launched(known[0])
        return known

    def launch(self, original: Any, writer: Any, *arguments: Any, **options: Any) -> Any:
        name = [*arguments, *options.values()][0]
        if not own_kernel(writer, name):
            self.recorder.launched(name)
        return original(writer, *arguments, **options)

    def not_fused(self, _: Any, why: Any, reason: str, *arguments: Any) -> None:
        # Since 2.5 the object has the names, because the nodes would stay alive.
        one = why.name1 if hasattr(why, "name1") else why.node1.get_name()
        other = why.name2 if hasattr(why, "name2") else why.node2.get_name()
        self.recorder.not_fused(one, other, lambda: reason % arguments if arguments else reason)

    def partition(self, original: Any, scheduler: Any) -> Any:
        partitions, signatures = original(scheduler)
        parts = [
            (sum(map(_launches, nodes)), not signature.skip_cudagraph)
            for nodes, signature in zip(partitions, signatures, strict=True)
        ]
        loops = any(
            signature.skip_cudagraph and any(map(holds_graph, nodes))
            for nodes, signature in zip(partitions, signatures, strict=True)
        )
        self.recorder.partitioned(
            sum(number for number, graph in parts if not graph),
            [number for number, graph in parts if graph],
            loops,
        )
        return partitions, signatures

    def mixed(self, original: Any, *arguments: Any, **options: Any) -> Any:
        self.recorder.assume(
            "the sums in ATen that end the gradients of the weights of norms are not counted"
        )
        return original(*arguments, **options)

    def cuda_graph(self, _: Any, model: Any, *__: Any, **given: Any) -> Any:
        reason = _changed_inputs(**given)
        if reason:
            torch._inductor.cudagraph_utils.log_cudagraph_skip_and_bump_counter(reason)
            self.recorder.assume(
                "an input that a graph changes in place is no output of another CUDA graph"
            )
        self.recorder.cuda_graph(skipped=bool(reason))
        return model

    def pad(self, original: Any, *arguments: Any, **options: Any) -> bool:
        try:
            return bool(original(*arguments, **options))
        except (RuntimeError, AssertionError):
            self.recorder.assume(
                "Inductor times a matrix product with and without padding: taken as not padded"
            )
            return False


def _no_manager(*_: Any, **__: Any) -> Any:
    """In place of the manager of CUDA graphs: it is asked for, and not used."""
    return SimpleNamespace(set_to_running_backward=lambda: None)


def _refuse_choice(
    original: Any, cache: Any, name: str, choices: Any, *arguments: Any, **options: Any
) -> Any:
    candidates = [choice for choice in choices if choice is not None]
    if len(candidates) > 1:
        raise failures.Unsupported(
            f"this mode times {len(candidates)} candidates for {name} on the device and takes "
            "the fastest, so its code is not known without the device"
        )
    return original(cache, name, choices, *arguments, **options)


def _keep_here(_: Any, __: Any, name: str, ___: Any) -> str:
    """A constant that kernels read, such as an index that is a list, is not copied to the device.
    Else the code is the same.
    """
    return name


def _fold_here(original: Any, folder: Any, node: Any) -> Any:
    """Constants are computed on the CPU: torch computes them with real tensors."""

    def there(value: Any) -> bool:
        return isinstance(value, torch.device) and value.type == "cuda"

    def here(value: Any) -> Any:
        return torch.device("cpu") if there(value) else value

    arguments, options = node.args, node.kwargs
    if not any(map(there, tree_leaves((arguments, options)))):
        return original(folder, node)
    node.args, node.kwargs = tree_map(here, arguments), tree_map(here, options)
    try:
        return original(folder, node)
    finally:
        node.args, node.kwargs = arguments, options


def _launches(node: Any) -> bool:
    """Whether a node launches anything itself. What runs another graph does not."""
    return works(node) and not holds_graph(node)


def _node(node: Any) -> Node:
    parts = parts_of(node)
    return Node(
        tuple(part.get_name() for part in parts),
        frozenset(read.name for read in node.read_writes.reads),
        frozenset(write.name for write in node.read_writes.writes),
        isinstance(node, ExternKernelSchedulerNode)
        and not isinstance(node.node, UserDefinedTritonKernel)
        and not holds_graph(node),
        sum(part.get_read_write_buffers_sizes() for part in parts),
        node.get_read_write_buffers_sizes(),
        tuple(sorted({str(origin.target) for origin in origins([node])})),
    )


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


def fake_mode() -> Any:
    """The mode of the fake tensors of the graph that Dynamo is compiling."""
    return torch._guards.TracingContext.get().fake_mode


def copy_notes(graph: Any, placed: Any) -> None:
    """Give a copy of Dynamo's graph what Dynamo notes beside it: where each input comes from.

    AOTAutograd learns from it which inputs are parameters, whose memory never moves.
    """
    for name in ("_param_name_to_source", "_source_to_user_stacks"):
        if hasattr(graph, name):
            setattr(placed, name, getattr(graph, name))
    for node, copied in zip(graph.graph.nodes, placed.graph.nodes, strict=True):
        if hasattr(node, "_dynamo_source"):
            copied._dynamo_source = node._dynamo_source


def compile_graph(graph: Any, inputs: Sequence[Any], options: dict[str, Any]) -> None:
    """Let AOTAutograd and Inductor work on a graph: forward, and backward if it needs gradients.

    AOTAutograd compiles the backward pass when it is first called. Here nothing is called, so the
    class that keeps it for later is watched.
    """
    # Newer releases, older ones.
    names = (f"{_AOT}.graph_compile", f"{_AOT}.jit_compile_runtime_wrappers")
    modules = map(importlib.import_module, filter(importlib.util.find_spec, names))
    owner = next(each for each in modules if hasattr(each, "AutogradLazyBackwardCompileInfo"))
    kept: list[Any] = []
    compilers: list[Any] = []

    def keeping(original: Any, *arguments: Any, **options: Any) -> Any:
        kept.append(original(*arguments, **options))
        return kept[-1]

    def starting(original: Any, self: Any, **options: Any) -> None:
        compilers.append(options["bw_compiler"])
        original(self, **options)

    done: list[bool] = []
    inner = torch._inductor.compile_fx.compile_fx_inner

    def compiling(*arguments: Any, **given: Any) -> Any:
        done.append(bool(given.get("is_backward")))
        return inner(*arguments, **given)

    hooks: list[tuple[Any, str, Hook]] = [
        (owner, "AutogradLazyBackwardCompileInfo", keeping),
        (torch._dynamo.backends.common.AotAutograd, "__init__", starting),
    ]
    with hooking(hooks):
        torch._inductor.compile_fx.compile_fx(
            graph, inputs, inner_compile=compiling, config_patches=options
        )
    if kept and not any(done):
        later = kept[-1]
        with (
            torch._guards.tracing(later.saved_context),
            torch._guards.compile_context(later.saved_compile_context),
            torch._C._DisableAutocast(),
        ):
            compilers[-1](later.bw_module, later.placeholder_list)
