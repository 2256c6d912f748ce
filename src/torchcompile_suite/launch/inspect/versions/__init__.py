"""The compiler's private state, which differs between torch 2.4 and 2.15.

No other package reads private state of the compiler. Each function works with all releases of the
ledger; tests/test_compiled.py runs them with the oldest release and the newest one. This package
imports Dynamo and Inductor, so import it only where the compiler is needed.

- this module: what a launch asks the compiler that really compiles
- ``uncaptured``: why it did not compile

Generating code for an absent GPU needs more of it:

- ``answers``: what torch and Triton ask the device
- ``generation``: a graph's way through AOTAutograd and Inductor
- ``hooks``: what Inductor writes

What Dynamo says is read by ``reasons``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch._dynamo
import torch._dynamo.convert_frame
import torch._dynamo.output_graph
import torch._dynamo.utils
import torch._inductor.config
import torch._inductor.cudagraph_utils
import torch._inductor.metrics
import torch._inductor.scheduler
import torch._inductor.utils
from torch._inductor.codegen import wrapper as _wrapper
from torch._inductor.ir import MultiOutput
from torch._inductor.scheduler import (
    ExternKernelSchedulerNode,
    NopKernelSchedulerNode,
    Scheduler,
)

from ....compiled import GraphBreak
from ...compiler import captures as captures  # since `reset`
from . import reasons

# With this stance, a call raises an error that names the stance, instead of compiling.
STANCE = "fail_on_recompile"
# Dynamo skips what it cannot capture, without a word.
NO_GRAPH = "nothing of it was compiled: 0 graphs"


def reset() -> None:
    """Drop all captures and counters, as in a new process."""
    torch._dynamo.reset()
    start_counting()


def start_counting() -> None:
    """Drop all counters, and no capture. FlexAttention captures graphs when it runs in eager."""
    torch._dynamo.utils.counters.clear()
    torch._dynamo.output_graph.graph_break_reasons.clear()
    torch._dynamo.utils.clear_compilation_metrics()
    torch._inductor.metrics.reset()


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


def refusing_to_capture() -> Callable[[], AbstractContextManager[Any]] | None:
    """Makes contexts in which a call that needs a new capture raises RuntimeError with `STANCE`.

    None in releases before `torch.compiler.set_stance`. To make a context is to enter it: the
    stance is set at once.
    """
    set_stance = getattr(torch.compiler, "set_stance", None)
    return None if set_stance is None else functools.partial(set_stance, STANCE)


def served_from_cache() -> int:
    """Graphs that were taken from a cache, because an equal graph was compiled before.

    In 2.4 these caches are off.
    """
    counters = torch._dynamo.utils.counters
    return int(
        counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
    )


def operators() -> int:
    """Calls in the captured graphs."""
    return int(torch._dynamo.utils.counters["stats"]["calls_captured"])


def graph_break(dynamos: Any) -> GraphBreak:
    """A graph break of Dynamo's: its reason in one line, and the user's innermost frame."""
    return GraphBreak(
        reasons.one_line(str(dynamos.reason)), reasons.place(list(dynamos.user_stack or ()))
    )


def graph_breaks() -> list[GraphBreak]:
    """All graph breaks, without duplicates."""
    return list(dict.fromkeys(map(graph_break, torch._dynamo.output_graph.graph_break_reasons)))


def _frames() -> list[Any]:
    """The compilation metrics of all compiled frames."""
    return [
        metrics
        for metrics in torch._dynamo.utils.get_compilation_metrics()
        # The entries of the backward pass have no frame.
        if getattr(metrics, "co_name", None) and not getattr(metrics, "fail_type", None)
    ]


def guards() -> int:
    """Guards of all captured frames."""
    return sum(frame.guard_count or 0 for frame in _frames())


def recompiles() -> int:
    """Captures of frames whose code was captured before."""
    frames = [
        (frame.co_filename, frame.co_firstlineno, frame.co_name)
        for frame in _frames()
        if frame.graph_op_count
    ]
    return len(frames) - len(set(frames))


def guard_check(module: torch.nn.Module, inputs: Any) -> Callable[[], object] | None:
    """A function that checks the guards of the module's forward; None if Dynamo has not captured
    the forward as a frame.

    ``inputs``: the inputs of a call, a tuple by position or a dict by name.
    """
    managers = _guard_managers(module)
    if not managers:
        return None
    forward = type(module).forward
    signature = inspect.signature(forward, follow_wrapped=False)
    given = signature.bind(module, **inputs) if isinstance(inputs, dict) else None
    bound = given or signature.bind(module, *inputs)
    bound.apply_defaults()
    code = forward.__code__
    # A frame's locals include the variables that the function closes over.
    cells = forward.__closure__ or ()
    local = dict(bound.arguments)
    local |= {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
    return lambda: managers[0].check(local)


def _guard_managers(module: torch.nn.Module) -> list[Any]:
    """The guard manager of each graph captured from the module's forward.

    In 2.4 the attribute of Dynamo's cache entries is ``check_fn``.
    """
    code = type(module).forward.__code__
    entries = torch._dynamo.eval_frame._debug_get_cache_entry_list(code)
    return [getattr(entry, "guard_manager", None) or entry.check_fn for entry in entries]


def watch_recompiles() -> list[GraphBreak]:
    """A list to which each later recompile adds its failed guard and its function.

    Dynamo computes the reasons even if it does not log them. If a function has several cached
    graphs, the first reason is taken. The name of Dynamo's function is plural since 2.5.
    """
    recompiled: list[GraphBreak] = []
    owner = torch._dynamo.convert_frame
    name = "get_and_maybe_log_recompilation_reason"
    name = name if hasattr(owner, name) else name + "s"
    original = getattr(owner, name)

    @functools.wraps(original)
    def noting(entries: Any, frame: Any, *arguments: Any, **options: Any) -> Any:
        reasons = original(entries, frame, *arguments, **options)
        code = frame.f_code
        where = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        reason = str(reasons[0]).strip().splitlines()[0][:300] if reasons else ""
        recompiled.append(GraphBreak(reason, where))
        return reasons

    setattr(owner, name, noting)
    return recompiled


def recompile_limit() -> int:
    """How many graphs Dynamo keeps of one function. 2.4 to 2.6 know it by its older name only."""
    config = torch._dynamo.config
    if hasattr(config, "recompile_limit"):
        return int(config.recompile_limit)
    return int(config.cache_size_limit)


def watch_limit() -> list[str]:
    """A list to which Dynamo adds what it says when it reaches a limit of recompiles.

    The first line of its warning, which has the name of the limit in all releases.
    """
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if "torch._dynamo hit config." in text:
                said.append(text.splitlines()[0][:300])

    logging.getLogger("torch._dynamo.convert_frame").addHandler(Listener())
    return said


class _KeepingLogger:
    """A logger that also adds each warning to a list, as `reasons.skip` tells it."""

    def __init__(self, logger: Any, lines: list[str]) -> None:
        self._logger = logger
        self._lines = lines

    def warning(self, message: object, *arguments: object) -> None:
        text = str(message) % arguments if arguments else str(message)
        self._lines.append(reasons.skip(text))
        self._logger.warning(message, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)


def watch_cudagraph_skips() -> list[str]:
    """A list to which each later graph without CUDA graphs adds the reason.

    The reason goes to a logger, in older releases ``perf_hint_log``, later ``cudagraphs_log``. The
    logger is replaced and not the function, because several modules import the function by name.
    """
    skips: list[str] = []
    utils = torch._inductor.cudagraph_utils
    used = utils.log_cudagraph_skip_and_bump_counter.__code__.co_names
    name = next(name for name in ("cudagraphs_log", "perf_hint_log") if name in used)
    setattr(utils, name, _KeepingLogger(getattr(utils, name), skips))
    return skips


def own_kernel(wrapper: Any, name: str) -> bool:
    """Whether a kernel of that name is a Triton kernel of the model's own.

    The call of one goes through ``generate_kernel_call`` in newer releases only.
    """
    return any(name == known[0] for known in wrapper.user_defined_kernel_cache.values())


class Generated:
    """What Inductor generated, as sums over graphs. The attributes are those of `Compiled`."""

    def __init__(self) -> None:
        """Start at zero."""
        self.kernels = self.kernel_launches = self.nodes_before = self.nodes_after = 0
        self.bytes_before = self.bytes_after = 0

    def add(self, nodes: Iterable[Any]) -> None:
        """Count the scheduler's nodes before code generation.

        A node without work (such as an output that is an input) does not count. Taking one of
        several outputs of a library call launches no kernel. A fused node holds its parts in
        ``snodes``.
        """
        for node in nodes:
            if isinstance(node, NopKernelSchedulerNode):
                continue
            parts = list(getattr(node, "snodes", None) or [node])
            self.nodes_after += 1
            self.nodes_before += len(parts)
            apart = sum(part.get_read_write_buffers_sizes() for part in parts)
            # For a fused node torch counts a whole table, even if a part reads a few of its rows.
            self.bytes_after += min(apart, node.get_read_write_buffers_sizes())
            self.bytes_before += apart
            library_call = isinstance(node, ExternKernelSchedulerNode)
            self.kernel_launches += library_call and not isinstance(node.node, MultiOutput)


def watch_generation() -> Generated:
    """Counts what Inductor generates from now on.

    Nothing public reports the nodes after fusion. Since 2.10 the bytes are counted only for a log.
    `torch._inductor.metrics` counts the loop nests of a C++ kernel as kernels. In all releases the
    methods that generate code get all nodes and kernels, so these methods are wrapped. The class
    that writes the wrapper has another name since 2.6.
    """
    generated = Generated()
    wrapper = getattr(_wrapper, "PythonWrapperCodegen", None) or _wrapper.WrapperCodeGen

    def before(owner: Any, name: str, note: Callable[..., None]) -> None:
        method = getattr(owner, name)

        @functools.wraps(method)
        def noting(self: Any, *arguments: Any, **options: Any) -> Any:
            note(self, *arguments, **options)
            return method(self, *arguments, **options)

        setattr(owner, name, noting)

    def count_kernel(*_: Any, **__: Any) -> None:
        generated.kernels += 1

    def count_launch(writer: Any, kernel_name: str, *_: Any, **__: Any) -> None:
        # The node of a kernel of the model's own has counted, as that of a library.
        generated.kernel_launches += not own_kernel(writer, kernel_name)

    before(Scheduler, "codegen", lambda scheduler, *_: generated.add(scheduler.nodes))
    before(wrapper, "define_kernel", count_kernel)
    before(wrapper, "generate_kernel_call", count_launch)
    return generated


def tracing_to(folder: Path) -> AbstractContextManager[Any]:
    """A context in which Inductor compiles without caches and writes its debug trace."""
    return torch._inductor.config.patch(  # type: ignore[no-any-return]
        {"trace.enabled": True, "trace.debug_dir": str(folder), "force_disable_caches": True}
    )


@contextlib.contextmanager
def watch_sources(note: Callable[[str, Any], None]) -> Iterator[None]:
    """A context in which each generated kernel calls ``note(kernel, nodes)``.

    The schedulings of C++ and of Triton define kernels in a method of the same name, whose second
    argument is the scheduler's nodes. No other place knows both the name and the nodes.
    """
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.codegen.triton import TritonScheduling

    def noting(method: Any) -> Any:
        @functools.wraps(method)
        def define_kernel(
            self: Any, source: Any, nodes: Any, *arguments: Any, **options: Any
        ) -> Any:
            name = method(self, source, nodes, *arguments, **options)
            note(str(name), nodes)
            return name

        return define_kernel

    with contextlib.ExitStack() as stack:
        for owner in (CppScheduling, TritonScheduling):
            stack.enter_context(
                mock.patch.object(owner, "define_kernel", noting(owner.define_kernel))
            )
        yield


def guard_texts(module: torch.nn.Module) -> list[str]:
    """The guards of each graph captured from the module's forward, as torch prints them."""
    return [str(manager) for manager in _guard_managers(module)]


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
