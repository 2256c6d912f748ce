"""The compiler's private state that generating code for an absent GPU needs, torch 2.4 to 2.15.

`hooks` stops Inductor where it would load the code, and tells what it has written. The GPU's
answers to torch and to Triton are those of `answers`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch._dynamo.backends.common
import torch._functorch.config
import torch._guards
import torch._inductor.compile_fx
import torch._inductor.config
import torch._inductor.constant_folding
import torch._inductor.cudagraph_trees
import torch._inductor.fx_passes.pad_mm
import torch._inductor.graph
import torch._inductor.scheduler
import torch._inductor.select_algorithm
import torch._subclasses.fake_tensor
from torch._inductor.codegen import wrapper as _wrapper
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.ir import MultiOutput
from torch._inductor.scheduler import (
    ExternKernelSchedulerNode,
    NopKernelSchedulerNode,
    Scheduler,
)
from torch.utils._pytree import tree_leaves, tree_map

from ....targets import WARP, Target
from ... import failures
from ..notes import Library, Node, Notes


def modes(mode: str) -> dict[str, Any]:
    """Inductor's settings for a mode of torch.compile."""
    from torch._inductor import list_mode_options

    return dict(list_mode_options(mode))


def settings() -> contextlib.AbstractContextManager[Any]:
    """A context in which everything is generated anew, in this process.

    Equal graphs must not share their code, and no pool of compile workers is needed.
    """
    stack = contextlib.ExitStack()
    stack.enter_context(
        torch._inductor.config.patch({"fx_graph_cache": False, "compile_threads": 1})
    )
    if hasattr(torch._functorch.config, "enable_autograd_cache"):  # since 2.5
        stack.enter_context(torch._functorch.config.patch({"enable_autograd_cache": False}))
    return stack


def fake_mode() -> Any:
    """The mode of the fake tensors of the graph that Dynamo is compiling."""
    return torch._guards.TracingContext.get().fake_mode


def meta_value(node: Any) -> Any:
    """Dynamo's fake tensor or symbol for an input of its graph; None if it kept none."""
    return node.meta.get("example_value")


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
    owner = next(
        module
        for module in map(_aot_module, ("graph_compile", "jit_compile_runtime_wrappers"))
        if module is not None and hasattr(module, "AutogradLazyBackwardCompileInfo")
    )
    kept: list[Any] = []
    compilers: list[Any] = []
    original = owner.AutogradLazyBackwardCompileInfo
    aot = torch._dynamo.backends.common.AotAutograd
    start = aot.__init__

    def keeping(*arguments: Any, **options: Any) -> Any:
        kept.append(original(*arguments, **options))
        return kept[-1]

    def starting(self: Any, **options: Any) -> None:
        compilers.append(options["bw_compiler"])
        start(self, **options)

    done: list[bool] = []
    inner = torch._inductor.compile_fx.compile_fx_inner

    def compiling(*arguments: Any, **given: Any) -> Any:
        done.append(bool(given.get("is_backward")))
        return inner(*arguments, **given)

    with (
        mock.patch.object(owner, "AutogradLazyBackwardCompileInfo", keeping),
        mock.patch.object(aot, "__init__", starting),
    ):
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


def _aot_module(name: str) -> Any:
    """A module of AOTAutograd; None if the release has none of that name."""
    try:
        return importlib.import_module(f"torch._functorch._aot_autograd.{name}")
    except ModuleNotFoundError:
        return None


def _library(node: Any) -> Library | None:
    """The call of a library that a node of the scheduler is; None for generated code.

    Taking one of several outputs of a call is no call of its own.
    """
    if not isinstance(node, ExternKernelSchedulerNode):
        return None
    inner = node.node
    name = getattr(inner, "python_kernel_name", None) or getattr(inner, "op_overload", None)
    return Library(str(name or type(inner).__name__).removeprefix("extern_kernels."))


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
        _library(node),
        sum(part.get_read_write_buffers_sizes() for part in parts),
        node.get_read_write_buffers_sizes(),
        tuple(sorted(operators)),
    )


def _works(node: Any) -> bool:
    """Whether a node of the scheduler launches anything."""
    if isinstance(node, NopKernelSchedulerNode):
        return False
    return not (isinstance(node, ExternKernelSchedulerNode) and isinstance(node.node, MultiOutput))


@contextlib.contextmanager
def hooks(notes: Notes) -> Iterator[None]:
    """A context in which Inductor generates code without loading it, and tells ``notes``.

    What a release lacks is left out: CUDA graphs of parts of a graph came with 2.7.
    """
    wrapper = getattr(_wrapper, "PythonWrapperCodegen", None) or _wrapper.WrapperCodeGen
    with contextlib.ExitStack() as stack:

        def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
            stack.enter_context(mock.patch.object(owner, name, make(getattr(owner, name))))

        replace(torch._inductor.graph.GraphLowering, "compile_to_module", _stopping(notes))
        replace(Scheduler, "codegen", _noting_nodes(notes))
        replace(TritonScheduling, "define_kernel", _noting_kernel(notes))
        replace(wrapper, "define_kernel", _noting_source(notes))
        replace(wrapper, "generate_kernel_call", _noting_launch(notes))
        replace(torch._inductor.scheduler.WhyNoFuse, "__call__", _noting_reason(notes))
        if hasattr(Scheduler, "graph_partition"):
            replace(Scheduler, "graph_partition", _noting_partition(notes))
        replace(torch._inductor.compile_fx, "compile_fx_inner", _noting_begin(notes))
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


def _noting_nodes(notes: Notes) -> Callable[[Any], Any]:
    def make(method: Any) -> Any:
        def codegen(scheduler: Any, *arguments: Any, **options: Any) -> Any:
            notes.nodes([_node(node) for node in scheduler.nodes if _works(node)])
            return method(scheduler, *arguments, **options)

        return codegen

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


def _noting_source(notes: Notes) -> Callable[[Any], Any]:
    def make(method: Any) -> Any:
        def define_kernel(self: Any, *arguments: Any, **options: Any) -> Any:
            name, body = [*arguments, *options.values()][:2]
            notes.source(name, body)
            return method(self, *arguments, **options)

        return define_kernel

    return make


def _noting_launch(notes: Notes) -> Callable[[Any], Any]:
    def make(method: Any) -> Any:
        def generate_kernel_call(self: Any, *arguments: Any, **options: Any) -> Any:
            notes.launched([*arguments, *options.values()][0])
            return method(self, *arguments, **options)

        return generate_kernel_call

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
            notes.partitioned(
                sum(
                    _works(node)
                    for nodes, signature in zip(partitions, signatures, strict=True)
                    if signature.skip_cudagraph
                    for node in nodes
                )
            )
            return partitions, signatures

        return graph_partition

    return make


def _noting_begin(notes: Notes) -> Callable[[Any], Any]:
    def make(function: Any) -> Any:
        def compile_fx_inner(*arguments: Any, **options: Any) -> Any:
            notes.begun(bool(options.get("is_backward")))
            return function(*arguments, **options)

        return compile_fx_inner

    return make


def _noting_cuda_graph(notes: Notes) -> Callable[[Any], Any]:
    def make(_: Any) -> Any:
        def cudagraphify(model: Any, *_: Any, **__: Any) -> Any:
            notes.cuda_graph()
            return model

        return cudagraphify

    return make


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


def _unlike(target: Target) -> str:
    """Why this torch cannot run on the target; empty if it can.

    Code for an architecture runs on later minor versions of the same major version; PTX
    (``compute_``) on all later ones.
    """
    architectures = torch._C._cuda_getArchFlags() or ""
    for name in architectures.split():
        kind, _, digits = name.partition("_")
        number = int("".join(filter(str.isdigit, digits)) or 0)
        major, minor = divmod(number, 10)
        same = (major, minor) <= (target.major, target.minor)
        if same and (kind == "compute" or major == target.major):
            return ""
    return (
        f"torch {torch.__version__} (CUDA {torch.version.cuda}) is built for {architectures}: it "
        f"does not run on compute capability {target.major}.{target.minor}"
    )


def answers(target: Target) -> None:
    """Answer torch's and Triton's questions about the device with the target's properties.

    For the rest of this process: nothing in it may measure. Raises `failures.Unsupported` if this
    release cannot generate code for the target.
    """
    if not hasattr(torch._C, "_cuda_getDeviceCount"):
        raise failures.Unsupported(f"torch {torch.__version__} is a CPU-only build")
    if reason := _unlike(target):
        raise failures.Unsupported(reason)
    properties = SimpleNamespace(
        name=target.device,
        major=target.major,
        minor=target.minor,
        multi_processor_count=target.multiprocessors,
        max_threads_per_multi_processor=target.threads_a_multiprocessor,
        max_threads_per_block=1024,
        regs_per_multiprocessor=target.registers_a_multiprocessor,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=target.shared_a_block,
        shared_memory_per_multiprocessor=target.shared_a_multiprocessor,
        warp_size=WARP,
        L2_cache_size=target.l2_bytes,
        total_memory=target.memory_bytes,
        is_integrated=False,
        is_multi_gpu_board=False,
        uuid="",
        gcnArchName="",
    )
    cuda = torch.cuda
    cuda._lazy_init = lambda: None
    cuda._get_device_properties = lambda _: properties
    # The state of the generator is not part of any code.
    state = torch.zeros(16, dtype=torch.uint8)
    for module in (cuda, cuda.random):
        module.get_rng_state = lambda *_, **__: state.clone()
        module.set_rng_state = lambda *_, **__: None
    cuda.is_current_stream_capturing = lambda: False
    fake = torch._subclasses.fake_tensor
    # The names of the function that makes a real tensor on the device: since 2.5, 2.4.
    name = "init_gpu_context" if hasattr(fake, "init_gpu_context") else "init_cuda_context"
    setattr(fake, name, lambda *_: None)
    # torch.tensor with a device makes a real tensor there, unless there is no device.
    fake.FakeTensorMode.avoid_device_init = property(lambda _: True)
    _answer_triton(target)


def _answer_triton(target: Target) -> None:
    """Give Triton a driver that knows the target, and nothing else."""
    try:
        from triton.backends.compiler import GPUTarget
        from triton.runtime.driver import driver
    except ImportError:
        raise failures.Unsupported(
            f"torch {torch.__version__} has no Triton beside it; install the CUDA build"
        ) from None
    sizes = {
        "max_shared_mem": target.shared_a_block,
        "multiprocessor_count": target.multiprocessors,
        "max_num_regs": target.registers_a_multiprocessor,
        "warpSize": WARP,
    }
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: GPUTarget("cuda", target.capability, WARP),
            get_current_device=lambda: 0,
            set_current_device=lambda _: None,
            get_current_stream=lambda _=0: 0,
            get_device_capability=lambda *_: (target.major, target.minor),
            get_active_torch_device=lambda: torch.device("cuda", 0),
            utils=SimpleNamespace(get_device_properties=lambda _: sizes),
        )
    )
    from torch._inductor.runtime import triton_helpers

    # The generated module of a kernel calls these: Triton's own driver would look for the device's.
    for name in ("set_driver_to_gpu", "set_driver_to_cpu"):
        if hasattr(triton_helpers, name):
            setattr(triton_helpers, name, lambda: None)
