"""One cell with a target: from the workload to what the compiler wrote for the target.

Dynamo captures the workload on the CPU and calls it with real values. Each graph that it captures
is placed on the target and goes through AOTAutograd and Inductor, as with a real device, until the
code would be loaded. The caller gets eager's values, so the capture goes on after a graph break: it
breaks where it breaks for a user, also at a branch on a value.

A tensor on the target is a fake tensor: shape, strides, dtype and device, but no memory. What the
model reads of the device is "cpu": a model that looks at it is captured as for a CPU.
"""

from __future__ import annotations

import contextlib
import copy
import operator
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves, tree_map

from ...cell import TF32, Cell
from ...generated import Generated
from ...measurement import OK, Launch, Outcome
from ...modes import EAGER
from ...targets import Target
from .. import device, failures
from ..build import build
from ..forward import autocast
from ..inspect import dynamo, inductor
from ..messages import Order
from ..progress import Stages
from ..subject import apply
from . import hooks
from .absent import NoLaunch
from .assembly import Assembled, Place, assemble
from .recorder import Recorder

TARGET = torch.device("cuda", 0)

# What torch says when a question reaches the CUDA runtime, which finds no driver.
_ASKED = re.compile(
    r"NVIDIA driver|CUDA driver|CUDA error|CUDA-capable|Allocator not initialized|"
    r"CUDA unknown error|No CUDA GPUs"
)


def generate(order: Order, target: Target) -> Launch:
    """Generate the order's code. Never raises: a failure is the launch's outcome.

    Call `absent.give` before, once.
    """
    load = os.getloadavg()[0]
    stages = Stages(str(order.cell))
    generated: Generated | None = None
    outcome: Outcome = OK
    try:
        generated = _generate(order, target, stages)
    except Exception as error:
        outcome = failures.outcome(explained(error), stages.now)
    finally:
        dynamo.reset()
    return Launch(
        kind="cold",
        outcome=outcome,
        stages_s=stages.seconds,
        environment=device.describe(device.get("cpu"), load),
        preloaded=[],
        generated=generated,
    )


def _check(cell: Cell) -> None:
    """Raise `failures.Unsupported` for a cell for which no code is generated."""
    if cell.mode == EAGER or cell.differs() & {"backend", "shapes", "way"}:
        raise failures.Unsupported(f"no code is generated for {cell}")
    if cell.dtype == TF32:
        raise failures.Unsupported(
            "TF32 is a setting of a device that is here: no code is generated for it; leave "
            "--dtype tf32 out"
        )


def _generate(order: Order, target: Target, stages: Stages) -> Generated:
    cell = order.cell
    _check(cell)
    with stages("build"):
        subject = build(msgspec.structs.replace(cell, device="cpu", target=""))
    dynamo.reset()
    recorder = Recorder()
    options = torch._inductor.list_mode_options(cell.mode)
    with (
        stages("compile"),
        inductor.generating_anew(),
        inductor.watch_cudagraph_skips() as skips,
        hooks.watching(recorder),
        dynamo.GivenUp() as given_up,
    ):
        try:
            often = [runs for runs in _capture(cell, subject, options) if runs > 1]
            if often:
                recorder.assume(
                    f"graphs that run several times in a call ({len(often)}, up to {max(often)} "
                    "times) are counted once"
                )
        except NoLaunch:
            if not dynamo.captures():
                raise failures.Unsupported(
                    "a Triton kernel of the model's own runs in eager, which needs the device"
                ) from None
            if dynamo.graph_breaks() or not dynamo.guard_texts(subject.module):
                recorder.assume(
                    "a Triton kernel of the model's own was not run: code after a graph break "
                    "behind it is missing"
                )
        if not dynamo.captures():
            raise failures.Unsupported(dynamo.NO_GRAPH)
    for frame in given_up.frames():
        where = f"{frame.where}: " if frame.where else ""
        recorder.assume(f"what Dynamo leaves to eager has no code here: {where}{frame.reason}")
    failed: dict[str, str] = {}
    assembled: dict[Place, Assembled] = {}
    if order.assemble:
        with stages("assemble"):
            assembled, failed = assemble(recorder.sources(), target)
    with_cuda_graphs = bool(options.get("triton.cudagraphs"))
    forward, backward = recorder.result(with_cuda_graphs, assembled)
    for name, reason in failed.items():
        recorder.assume(f"{name} was not assembled: {reason}")
    generated = Generated(
        graphs=dynamo.captures(),
        operators=dynamo.operators(),
        forward=forward,
        backward=backward,
        graph_breaks=dynamo.graph_breaks(),
        cudagraph_skips=sorted(set(skips)),
        assumed=list(recorder.assumed),
    )
    if order.folder:
        _write(Path(order.folder), cell, generated, recorder, str(torch.__version__))
    return generated


def _capture(cell: Cell, subject: Any, options: dict[str, Any]) -> list[int]:
    """Call the compiled module once. Returns how often each graph ran.

    Raises the first error of the compiler's.
    """
    errors: list[Exception] = []
    runs: list[int] = []
    on_target = msgspec.structs.replace(cell, device=TARGET.type)
    # The cell's region is one of the CPU's; this one is the target's.
    backend = for_target(options, errors, lambda: autocast(on_target), runs)
    forward = torch.compile(subject.module, backend=backend)
    # No gradients, but not torch.inference_mode: its tensors cannot become parameters.
    context = contextlib.nullcontext() if cell.phase == "training" else torch.no_grad()
    try:
        with context, autocast(subject.cell):
            apply(forward, subject.inputs)
    except NoLaunch:
        if not errors:
            raise
    if errors:
        raise errors[0]
    return runs


def for_target(
    options: dict[str, Any],
    errors: list[Exception],
    region: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
    runs: list[int] | None = None,
) -> Callable[[torch.fx.GraphModule, Sequence[Any]], Any]:
    """A backend of torch.compile that compiles each graph for the target, and runs it in eager.

    ``options``: of Inductor. ``errors`` gets the first error of the compiler's; later graphs are
    not compiled. ``region``: makes a context to compile in. ``runs`` gets how often each graph
    ran.
    """
    counted = [] if runs is None else runs

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        if not errors:
            try:
                with region():
                    hooks.compile_graph(*place(graph, inputs), options)
            except Exception as error:
                errors.append(error)
        number = len(counted)
        counted.append(0)

        def run(*given: Any) -> Any:
            counted[number] += 1
            return graph.forward(*given)

        return run

    return backend


def place(
    graph: torch.fx.GraphModule, inputs: Sequence[Any]
) -> tuple[torch.fx.GraphModule, list[Any]]:
    """A copy of the graph and its inputs on the target; the graph itself does not change."""
    mode = hooks.fake_mode()
    with mode:
        # By identity: a parameter that two layers share stays shared.
        copies = {id(tensor): _tensor(tensor) for tensor in _held(graph)}
    placed = copy.deepcopy(graph, copies)
    hooks.copy_notes(graph, placed)
    for part in _graphs(placed):
        for node in part.graph.nodes:
            if any(map(_on_cpu, tree_leaves((node.args, node.kwargs)))):
                node.args = tree_map(_device, node.args)
                node.kwargs = tree_map(_device, node.kwargs)
        part.recompile()
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    with mode:
        given = [
            _input(node.meta.get("example_value"), value)
            for node, value in zip(placeholders, inputs, strict=True)
        ]
    return placed, given


def _graphs(graph: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    """The graph, and the graphs in it: bodies of conditions, loops and checkpointed regions."""
    return (part for part in graph.modules() if isinstance(part, torch.fx.GraphModule))


def _held(graph: torch.fx.GraphModule) -> Iterator[torch.Tensor]:
    """Parameters, buffers and other tensors that the graph holds."""
    yield from graph.parameters()
    yield from graph.buffers()
    for part in _graphs(graph):
        for node in part.graph.nodes:
            if node.op == "get_attr":
                value = operator.attrgetter(node.target)(part)
                if isinstance(value, torch.Tensor):
                    yield value


def _tensor(value: torch.Tensor, shape: torch.Tensor | None = None) -> torch.Tensor:
    """A tensor of the same kind on the target. Called in the mode of fake tensors.

    ``shape``: a tensor with its sizes, strides and dtype; None for its own.
    """
    if is_traceable_wrapper_subclass(value):
        raise failures.Unsupported(
            f"a weight or an input is a {type(value).__name__}, a subclass of torch.Tensor: its "
            "code for a device that is not here is not known"
        )
    like = value if shape is None else shape
    made = torch.empty_strided(like.size(), like.stride(), dtype=like.dtype, device=TARGET)
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(made, value.requires_grad)
    made.requires_grad_(value.requires_grad)
    if value.requires_grad and not value.is_leaf:
        # What comes from another graph may be changed in place; a leaf may not.
        with torch.enable_grad():
            return _Computed.apply(made)
    return made


class _Computed(torch.autograd.Function):  # type: ignore[misc]
    """A tensor that autograd has computed, with the sizes and strides of another one."""

    @staticmethod
    def forward(_: Any, like: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(like.size(), like.stride(), dtype=like.dtype, device=like.device)

    @staticmethod
    def backward(_: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def _input(symbolic: Any, value: Any) -> Any:
    """An input of the graph on the target. ``symbolic`` is Dynamo's own idea of it, which has
    symbols where a size is dynamic.
    """
    if not isinstance(value, torch.Tensor):
        return value if symbolic is None else symbolic
    return _tensor(value, symbolic if isinstance(symbolic, torch.Tensor) else None)


def _on_cpu(value: Any) -> bool:
    """Whether an argument of an operator names the CPU; as text, it is an autocast region's."""
    if isinstance(value, torch.device):
        return bool(value.type == "cpu")
    return isinstance(value, str) and value == "cpu"


def _device(value: Any) -> Any:
    """The target in place of the CPU, in an argument of an operator."""
    if not _on_cpu(value):
        return value
    return TARGET if isinstance(value, torch.device) else TARGET.type


def explained(error: Exception) -> Exception:
    """The error to report: torch wraps errors of its parts, and ours with them."""
    seen = failures.chain(error)
    for link in seen:
        if isinstance(link, failures.Unsupported):
            return link
    for link in seen:
        if _ASKED.search(str(link)):
            return failures.Unsupported(
                f"torch {torch.__version__} asks the device while it compiles this: "
                f"{failures.one_line(str(link))}"
            )
    return error


def _write(folder: Path, cell: Cell, generated: Generated, recorder: Recorder, torch: str) -> None:
    """Fill ``folder``: a module for each graph and pass, and ``index.md``. Raises OSError."""
    names = []
    for direction, modules in recorder.modules().items():
        for number, text in enumerate(modules):
            name = f"{direction}-{number}.py"
            (folder / name).write_text(text, encoding="utf-8")
            names.append(name)
    lines = [
        f"# {cell}, torch {torch}",
        "",
        "Generated without the device. Nothing here was run, and no time is claimed.",
        "",
        *(f"- [{name}]({name})" for name in names),
    ]
    for direction, code in (("Forward", generated.forward), ("Backward", generated.backward)):
        if code is None:
            continue
        lines += ["", f"## {direction}: {code.launches} launches a call", ""]
        for kernel in code.kernels:
            size = ""
            if kernel.registers is not None:
                size = (
                    f"; {kernel.registers} registers, {kernel.spilled_bytes} bytes spilled, "
                    f"{kernel.shared_bytes} bytes shared, occupancy {kernel.occupancy:.0%}"
                    + (f" ({kernel.limited_by})" if kernel.limited_by else "")
                )
            lines.append(
                f"- `{kernel.name}`, {kernel.launches} times: {', '.join(kernel.operators)}{size}"
            )
        lines.append(f"- calls of libraries: {code.library_launches}")
    lines += ["", f"## Graph breaks: {len(generated.graph_breaks)}", ""]
    lines += [f"- {one.where}: {one.reason}" for one in generated.graph_breaks]
    lines += ["", "## Assumed", "", *(f"- {text}" for text in generated.assumed or ["nothing"])]
    if generated.cudagraph_skips:
        lines += ["", "## Not in CUDA graphs", ""]
        lines += [f"- {text}" for text in generated.cudagraph_skips]
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
