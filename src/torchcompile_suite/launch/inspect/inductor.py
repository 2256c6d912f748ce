"""What a launch asks Inductor that really compiles, torch 2.4 to 2.15; see `dynamo`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch._dynamo.utils
import torch._functorch.config
import torch._inductor.config
import torch._inductor.cudagraph_utils
import torch._inductor.utils
from torch._inductor.codegen import wrapper as _wrapper
from torch._inductor.ir import MultiOutput
from torch._inductor.scheduler import ExternKernelSchedulerNode, NopKernelSchedulerNode, Scheduler

from .dynamo import Hook, hooking, skip

# The class that writes the generated module has another name since 2.6.
WRAPPER = getattr(_wrapper, "PythonWrapperCodegen", None) or _wrapper.WrapperCodeGen


def eager_draws(module: torch.nn.Module) -> tuple[AbstractContextManager[Any] | None, str]:
    """A context in which the code of Inductor draws the same random numbers as eager; or None, and
    the reason.

    This needs the same calls of the generator in the same order, and the same memory layouts,
    because a mask is drawn in the order of memory. Graph partitioning draws all noise first; since
    2.9 it is on wherever CUDA graphs are possible.

    There is none for modules with convolutions from 2.5 to 2.8. There, convolutions that are
    compiled without layout optimization write outside their memory (on a CPU: `free(): invalid
    size`, also without this suite). Without convolutions, no layout changes.
    """
    settings = {"fallback_random": True}
    # A TorchVersion, which compares with version texts. A nightly counts as its release.
    if not "2.5.dev0" <= torch.__version__ < "2.9.dev0":
        settings["layout_optimization"] = False
    elif any(isinstance(part, torch.nn.modules.conv._ConvNd) for part in module.modules()):
        return None, f"with convolutions, torch {torch.__version__} cannot draw as eager does"
    if hasattr(torch._inductor.config, "graph_partition"):
        settings["graph_partition"] = False
    return torch._inductor.config.patch(settings), ""


def times_products() -> bool:
    """Whether max-autotune times Triton's matrix products on the current accelerator.

    torch wants a number of multiprocessors for it, and says otherwise that there are not enough.
    """
    return bool(torch._inductor.utils.is_big_gpu(torch.cuda.current_device()))


def served_from_cache() -> int:
    """Graphs that were taken from a cache, because an equal graph was compiled before.

    In 2.4 these caches are off. A graph of AOTAutograd's cache takes its code from Inductor's: only
    where it has the code itself, Inductor's has no hit.
    """
    counters = torch._dynamo.utils.counters
    hits = counters["aot_autograd"]["autograd_cache_hit"]
    return int(hits or counters["inductor"]["fxgraph_cache_hit"])


# The classes of Inductor's nodes that run another graph.
_GRAPHS_INSIDE = frozenset(("Conditional", "InvokeSubgraph", "Switch", "WhileLoop"))


class _KeepingLogger:
    """A logger that also adds each warning of one function to a list, as `dynamo.skip` tells it."""

    def __init__(self, logger: Any, lines: list[str], function: Any) -> None:
        self._logger = logger
        self._lines = lines
        self._code = function.__code__

    def warning(self, message: object, *arguments: object) -> None:
        if sys._getframe(1).f_code is self._code:
            text = str(message) % arguments if arguments else str(message)
            self._lines.append(skip(text))
        self._logger.warning(message, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)


@contextlib.contextmanager
def watch_cudagraph_skips() -> Iterator[list[str]]:
    """A context with a list to which each graph without CUDA graphs adds the reason.

    The reason goes to a logger, in older releases ``perf_hint_log``, later ``cudagraphs_log``. The
    logger is replaced and not the function, because several modules import the function by name.
    Other functions warn there, too, about graphs that do have CUDA graphs.
    """
    skips: list[str] = []
    utils = torch._inductor.cudagraph_utils
    skipping = utils.log_cudagraph_skip_and_bump_counter
    used = skipping.__code__.co_names
    name = next(name for name in ("cudagraphs_log", "perf_hint_log") if name in used)
    keeping = _KeepingLogger(getattr(utils, name), skips, skipping)
    with mock.patch.object(utils, name, keeping):
        yield skips


def parts_of(node: Any) -> list[Any]:
    """The nodes that were fused into a node of the scheduler; the node itself if none were."""
    return list(getattr(node, "snodes", None) or [node])


def works(node: Any) -> bool:
    """Whether a node of the scheduler launches anything.

    Taking one of several outputs of a library's call is no call of its own. An operator that
    Inductor leaves to ATen counts even if it is a view, as in all recorded counts.
    """
    if isinstance(node, NopKernelSchedulerNode):
        return False
    return not (isinstance(node, ExternKernelSchedulerNode) and isinstance(node.node, MultiOutput))


def holds_graph(node: Any) -> bool:
    """Whether a node of the scheduler runs another graph: a branch, a loop, a repeated region."""
    return type(getattr(node, "node", None)).__name__ in _GRAPHS_INSIDE


def origins(nodes: Iterable[Any]) -> Iterator[Any]:
    """The calls of ATen operators that nodes of the scheduler come from."""
    for node in nodes:
        for part in parts_of(node):
            for origin in getattr(getattr(part, "node", None), "origins", None) or ():
                if origin.op == "call_function":
                    yield origin


def own_kernel(wrapper: Any, name: str) -> bool:
    """Whether a kernel of that name is a Triton kernel of the model's own.

    The call of one goes through ``generate_kernel_call`` in newer releases only.
    """
    return any(name == known[0] for known in wrapper.user_defined_kernel_cache.values())


class Generated:
    """What Inductor generated, as sums over graphs. The attributes are those of `Compiled`."""

    def __init__(self) -> None:
        """Start at zero."""
        self.kernels = self.launches = self.nodes_before = self.nodes_after = 0
        self.bytes_before = self.bytes_after = 0
        self.why_no_launches = ""

    def known(self) -> tuple[dict[str, int], dict[str, str]]:
        """The counts, and why others are not known."""
        counts = dict(vars(self))
        del counts["why_no_launches"]
        if not self.why_no_launches:
            return counts, {}
        del counts["launches"]
        return counts, {"launches": self.why_no_launches}

    def add(self, nodes: Iterable[Any]) -> None:
        """Count the scheduler's nodes before code generation.

        A node without work (such as an output that is an input) does not count. Taking one of
        several outputs of a library call launches no kernel.
        """
        for node in nodes:
            if isinstance(node, NopKernelSchedulerNode) or _is_choice(node):
                continue
            if holds_graph(node):
                self.why_no_launches = "a graph runs another one, written once, any number of times"
            if type(node).__name__ == "FusedMixOrderReductions":  # on GPUs, since 2.10
                self.why_no_launches = "reductions in ATen, of no node, end kernels of mixed order"
            parts = parts_of(node)
            self.nodes_after += 1
            self.nodes_before += len(parts)
            apart = sum(part.get_read_write_buffers_sizes() for part in parts)
            # For a fused node torch counts a whole table, even if a part reads a few of its rows.
            self.bytes_after += min(apart, node.get_read_write_buffers_sizes())
            self.bytes_before += apart
            self.launches += isinstance(node, ExternKernelSchedulerNode) and works(node)


@contextlib.contextmanager
def watch_generation() -> Iterator[Generated]:
    """A context that counts what Inductor generates.

    Nothing public reports the nodes after fusion. Since 2.10 the bytes are counted only for a log.
    `torch._inductor.metrics` counts the loop nests of a C++ kernel as kernels. In all releases the
    methods that generate code get all nodes and kernels, so these methods are wrapped.
    """
    generated = Generated()

    def schedule(original: Any, scheduler: Any, *arguments: Any, **options: Any) -> Any:
        if not is_candidate():
            generated.add(scheduler.nodes)
        return original(scheduler, *arguments, **options)

    def define(original: Any, *arguments: Any, **options: Any) -> Any:
        generated.kernels += not is_candidate()
        return original(*arguments, **options)

    def launch(
        original: Any, writer: Any, kernel_name: str, *arguments: Any, **options: Any
    ) -> Any:
        # The node of a kernel of the model's own has counted, as that of a library.
        generated.launches += not (own_kernel(writer, kernel_name) or is_candidate())
        return original(writer, kernel_name, *arguments, **options)

    hooks: list[tuple[Any, str, Hook]] = [
        (Scheduler, "codegen", schedule),
        (WRAPPER, "define_kernel", define),
        (WRAPPER, "generate_kernel_call", launch),
    ]
    with hooking(hooks):
        yield generated


def _is_choice(node: Any) -> bool:
    """Whether the node stands for a graph that was timed and chosen: its own nodes come, too."""
    return type(getattr(node, "node", None)).__name__ == "SubgraphBuffer"


def is_candidate() -> bool:
    """Whether Inductor compiles a graph to time it against others (decompose-K, since 2.8)."""
    from torch._inductor.virtualized import V

    return str(getattr(V.graph, "name", "")).startswith("benchmark_")


def tracing_to(folder: Path) -> AbstractContextManager[Any]:
    """A context in which Inductor compiles without caches and writes its debug trace."""
    return torch._inductor.config.patch(  # type: ignore[no-any-return]
        {"trace.enabled": True, "trace.debug_dir": str(folder), "force_disable_caches": True}
    )


def generating_anew() -> AbstractContextManager[Any]:
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


def watch_sources(note: Callable[[str, Any, str], None]) -> AbstractContextManager[None]:
    """A context in which each generated kernel calls ``note(kernel, nodes, source)``.

    The schedulings of C++ and of Triton define kernels in a method of the same name, whose second
    argument is the scheduler's nodes. No other place knows both the name and the nodes. Of nested
    reductions (on since 2.15) it has the outer one only; the scheduler has both.
    """
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.codegen.triton import TritonScheduling

    def define(
        original: Any, scheduling: Any, source: Any, nodes: Any, *others: Any, **options: Any
    ) -> Any:
        name = original(scheduling, source, nodes, *others, **options)
        if not is_candidate():
            scheduler = torch._inductor.virtualized.V.graph.scheduler
            now: Any = getattr(scheduler, "current_node", None)
            if type(now).__name__ == "FusedNestedReductions":
                nodes = now.get_nodes()
            note(str(name), nodes, str(source))
        return name

    return hooking((owner, "define_kernel", define) for owner in (CppScheduling, TritonScheduling))


def phases() -> dict[str, float]:
    """Seconds of compiling by phase. No phase contains another one.

    The times are from torch's own timers. In 2.4 a timer has the name of its function; later
    releases use other names. In 2.4 code generation has no timer of its own. A phase without a
    timer is left out.
    """
    timers = {
        name: sum(calls_s) for name, calls_s in torch._dynamo.utils.compilation_time_metrics.items()
    }

    def first(*names: str) -> float | None:
        return next((timers[name] for name in names if name in timers), None)

    whole = first("_compile.compile_inner", "_compile.<locals>.compile_inner")
    backend = first("OutputGraph.call_user_compiler")
    inductor = first("compile_fx_inner")
    module = first("GraphLowering.compile_to_module")
    generation = first("GraphLowering.codegen")
    if generation is None:
        parts = ("Scheduler.__init__", "Scheduler.codegen", "WrapperCodeGen.generate")
        generation = sum(timers.get(name, 0.0) for name in parts)
    seconds: dict[str, float] = {}
    if whole is not None:
        seconds["dynamo"] = whole - (backend or 0.0)
    if backend is not None and inductor is not None:
        seconds["aot_autograd"] = backend - inductor
    if inductor is not None and module is not None:
        build = module - generation
        seconds["inductor"] = inductor - build
        seconds["kernel_build"] = build
    # The timers start and stop at different places, so a very short phase can be a little below 0.
    return {name: max(0.0, round(value, 4)) for name, value in seconds.items()}
