"""What is spelled differently between torch 2.4 and 2.15, and nowhere public in any of them.

The only module that reads the compiler's private state. Each function works on every release of the
ledger; tests/test_versions.py asks the releases at both sides of each difference. Import it only
where the compiler is wanted: it imports Dynamo and Inductor.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
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
from torch._inductor.codegen import wrapper as _wrapper
from torch._inductor.ir import MultiOutput
from torch._inductor.scheduler import (
    ExternKernelSchedulerNode,
    NopKernelSchedulerNode,
    Scheduler,
)

from ...cell import GraphBreak


def reset() -> None:
    """Forget everything captured and every counter, as in a new process."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.output_graph.graph_break_reasons.clear()
    torch._dynamo.utils.clear_compilation_metrics()
    torch._inductor.metrics.reset()


def eager_draws() -> AbstractContextManager[Any] | None:
    """While it is entered, what Inductor compiles draws random numbers as eager does.

    That takes the same calls of the generator, the same order of them, and tensors laid out alike,
    for a mask is drawn as it lies in memory. Partitioning, on where there may be CUDA graphs since
    2.9, draws all noise first.

    None from 2.5 to 2.8, where convolutions compiled without layout optimization write beyond their
    memory (on a CPU: `free(): invalid size`, without anything of ours).
    """
    if (2, 5) <= tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        return None
    settings = {"fallback_random": True, "layout_optimization": False}
    if hasattr(torch._inductor.config, "graph_partition"):
        settings["graph_partition"] = False
    return torch._inductor.config.patch(settings)  # type: ignore[no-any-return]


def captures() -> int:
    """Graphs that Dynamo has captured since `reset`."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def served_from_cache() -> int:
    """Graphs that were not compiled because an equal one had been, in this process or before.

    2.4 ships with these caches off.
    """
    counters = torch._dynamo.utils.counters
    return int(
        counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
    )


def operators() -> int:
    """Calls in the captured graphs."""
    return int(torch._dynamo.utils.counters["stats"]["calls_captured"])


def graph_break(found: Any) -> GraphBreak:
    """A break as Dynamo tells of it: the first line of its reason, the user's innermost frame."""
    frames = list(found.user_stack or ())
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    reason = str(found.reason).strip().splitlines()
    return GraphBreak(reason[0][:300] if reason else "", where)


def graph_breaks() -> list[GraphBreak]:
    """Every place where the graph was broken, once."""
    return list(dict.fromkeys(map(graph_break, torch._dynamo.output_graph.graph_break_reasons)))


def _frames() -> list[Any]:
    """The compilation metrics of every frame that was compiled."""
    return [
        each
        for each in torch._dynamo.utils.get_compilation_metrics()
        # The backward pass has entries of its own, without a frame.
        if getattr(each, "co_name", None) and not getattr(each, "fail_type", None)
    ]


def guards() -> int:
    """Guards of all captured frames."""
    return sum(each.guard_count or 0 for each in _frames())


def recompiles() -> int:
    """Frames captured again although their code had been captured before."""
    frames = [
        (each.co_filename, each.co_firstlineno, each.co_name)
        for each in _frames()
        if each.graph_op_count
    ]
    return len(frames) - len(set(frames))


def guard_check(module: torch.nn.Module, inputs: Any) -> Callable[[], object] | None:
    """Checks the guards of the module's own forward; None where it was not captured as such.

    ``inputs`` are those of a call: a tuple by position, a dict by name.
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
    # What the function closes over is among a frame's locals, too.
    cells = forward.__closure__ or ()
    local = dict(bound.arguments)
    local |= {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
    return lambda: managers[0].check(local)


def _guard_managers(module: torch.nn.Module) -> list[Any]:
    """Of each graph captured from the module's own forward. The attribute of Dynamo's cache entries
    was called ``check_fn`` at first.
    """
    code = type(module).forward.__code__
    entries = torch._dynamo.eval_frame._debug_get_cache_entry_list(code)
    return [getattr(entry, "guard_manager", None) or entry.check_fn for entry in entries]


def watch_recompiles() -> list[GraphBreak]:
    """A list that gets the failed guard, and the function, of every recompilation from now on.

    Dynamo asks for the reasons whether it logs them or not; of several cached graphs the one tried
    first tells. The function's name got its plural in 2.5.
    """
    told: list[GraphBreak] = []
    owner = torch._dynamo.convert_frame
    name = "get_and_maybe_log_recompilation_reason"
    name = name if hasattr(owner, name) else name + "s"
    asked = getattr(owner, name)

    @functools.wraps(asked)
    def noted(entries: Any, frame: Any, *arguments: Any, **options: Any) -> Any:
        reasons = asked(entries, frame, *arguments, **options)
        code = frame.f_code
        where = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        reason = str(reasons[0]).strip().splitlines()[0][:300] if reasons else ""
        told.append(GraphBreak(reason, where))
        return reasons

    setattr(owner, name, noted)
    return told


class _Telling:
    """A logger that also remembers what it is told."""

    def __init__(self, logger: Any, told: list[str]) -> None:
        self._logger = logger
        self._told = told

    def warning(self, message: object, *arguments: object) -> None:
        text = str(message) % arguments if arguments else str(message)
        self._told.append(text.splitlines()[0][:300] if text else "")
        self._logger.warning(message, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)


def watch_cudagraph_skips() -> list[str]:
    """A list that gets the reason of every graph that CUDA graphs skip from now on.

    The reason goes to a logger, ``perf_hint_log`` at first and ``cudagraphs_log`` later; the
    function itself is imported by name in several places, so it is not what can be replaced.
    """
    told: list[str] = []
    utils = torch._inductor.cudagraph_utils
    used = utils.log_cudagraph_skip_and_bump_counter.__code__.co_names
    name = next(name for name in ("cudagraphs_log", "perf_hint_log") if name in used)
    setattr(utils, name, _Telling(getattr(utils, name), told))
    return told


class Generated:
    """What was generated, summed over graphs: before fusion, after it, and as code."""

    def __init__(self) -> None:
        """Start at zero."""
        self.kernels = self.launches = self.nodes_before = self.nodes_after = 0
        self.bytes_before = self.bytes_after = 0

    def add(self, nodes: Iterable[Any]) -> None:
        """Count the scheduler's nodes as they go to code generation.

        A node that does nothing (an output that is an input, say) is none, and taking one output of
        a library call that has several launches nothing. What fusion joined is still there, under
        ``snodes``.
        """
        for node in nodes:
            if isinstance(node, NopKernelSchedulerNode):
                continue
            parts = list(getattr(node, "snodes", None) or [node])
            self.nodes_after += 1
            self.nodes_before += len(parts)
            apart = sum(part.get_read_write_buffers_sizes() for part in parts)
            # Of a fused node torch counts a whole table even where a part gathers a few rows of it.
            self.bytes_after += min(apart, node.get_read_write_buffers_sizes())
            self.bytes_before += apart
            library_call = isinstance(node, ExternKernelSchedulerNode)
            self.launches += library_call and not isinstance(node.node, MultiOutput)


def watch_generation() -> Generated:
    """Counts every graph that Inductor generates code for from now on.

    Nothing public tells the nodes after fusion; from 2.10 on the bytes are counted only for a log;
    and `torch._inductor.metrics` counts the loop nests of a C++ kernel as kernels. The methods that
    generate code are called with all of it in every release; the class that writes the wrapper got
    another name in 2.6.
    """
    found = Generated()
    wrapper = getattr(_wrapper, "PythonWrapperCodegen", None) or _wrapper.WrapperCodeGen

    def before(owner: Any, name: str, note: Callable[..., None]) -> None:
        method = getattr(owner, name)

        @functools.wraps(method)
        def noted(self: Any, *arguments: Any, **options: Any) -> Any:
            note(self)
            return method(self, *arguments, **options)

        setattr(owner, name, noted)

    def defined(_: Any) -> None:
        found.kernels += 1

    def called(_: Any) -> None:
        found.launches += 1

    before(Scheduler, "codegen", lambda scheduler: found.add(scheduler.nodes))
    before(wrapper, "define_kernel", defined)
    before(wrapper, "generate_kernel_call", called)
    return found


def tracing_to(folder: Path) -> AbstractContextManager[Any]:
    """While it is entered, Inductor compiles everything anew and writes what it does there."""
    return torch._inductor.config.patch(  # type: ignore[no-any-return]
        {"trace.enabled": True, "trace.debug_dir": str(folder), "force_disable_caches": True}
    )


@contextlib.contextmanager
def watch_sources(note: Callable[[str, Any], None]) -> Iterator[None]:
    """While it is entered, ``note(kernel, nodes)`` hears of each kernel that is generated.

    The schedulings of C++ and of Triton define kernels in a method of the same name, with the
    scheduler's nodes as its second argument; nothing else knows both.
    """
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.codegen.triton import TritonScheduling

    def noting(method: Any) -> Any:
        @functools.wraps(method)
        def defined(self: Any, source: Any, nodes: Any, *arguments: Any, **options: Any) -> Any:
            name = method(self, source, nodes, *arguments, **options)
            note(str(name), nodes)
            return name

        return defined

    with contextlib.ExitStack() as stack:
        for owner in (CppScheduling, TritonScheduling):
            stack.enter_context(
                mock.patch.object(owner, "define_kernel", noting(owner.define_kernel))
            )
        yield


def guard_texts(module: torch.nn.Module) -> list[str]:
    """The guards of each graph captured from the module's own forward, as torch prints them."""
    return [str(manager) for manager in _guard_managers(module)]


def phases() -> dict[str, float]:
    """Seconds of compiling by phase, each without the others inside it.

    From the timers that torch keeps. They were decorators, named after their function, in 2.4 and
    carry names of their own since; code generation had no timer of its own at first. A phase is
    left out where its timer does not exist.
    """
    timers = {
        name: sum(seconds) for name, seconds in torch._dynamo.utils.compilation_time_metrics.items()
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
    found: dict[str, float] = {}
    if whole is not None:
        found["dynamo"] = whole - (backend or 0.0)
    if backend is not None and inductor is not None:
        found["aot_autograd"] = backend - inductor
    if inductor is not None and module is not None:
        build = module - generation
        found["inductor"] = inductor - build
        found["kernel_build"] = build
    # Clocks of different places: a phase that took nothing may come out just below it.
    return {name: max(0.0, round(seconds, 4)) for name, seconds in found.items()}
