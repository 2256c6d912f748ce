"""One cell with a target: from the workload to what the compiler wrote for the target.

Dynamo captures the workload on the CPU and calls it with real values. Each graph that it captures
is placed on the target and goes through AOTAutograd and Inductor, as with a real device, until the
code would be loaded. The caller gets eager's values, so the capture goes on after a graph break.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import torch

from ...cell import Cell
from ...generated import Generated
from ...measurement import OK, Launch, Outcome
from ...modes import EAGER, MODES
from ...targets import Target
from .. import device, environment, failures, precision
from ..build import build
from ..inspect import versions
from ..inspect.versions import answers, generation, hooks
from ..stages import Stages
from ..subject import apply
from . import files
from .assembly import Assembled, Place, assemble
from .orders import Order
from .place import TARGET, place
from .recorder import Recorder

# What torch says when a question reaches the CUDA runtime, which finds no driver.
_ASKED = re.compile(
    r"NVIDIA driver|CUDA driver|CUDA error|CUDA-capable|Allocator not initialized|"
    r"CUDA unknown error|No CUDA GPUs"
)
_LINKS = ("inner_exception", "__cause__", "__context__")


def generate(order: Order, target: Target) -> Launch:
    """Generate the order's code. Never raises: a failure is the launch's outcome.

    Call `answers.give` before, once.
    """
    load = os.getloadavg()[0]
    stages = Stages(str(order.cell))
    generated: Generated | None = None
    outcome: Outcome = OK
    try:
        generated = _generate(order, target, stages)
    except Exception as error:
        outcome = failures.outcome(_explained(error), stages.now)
    finally:
        versions.reset()
    return Launch(
        kind="cold",
        outcome=outcome,
        stages_s=stages.seconds,
        environment=environment.describe(device.get("cpu"), load),
        preloaded=[],
        generated=generated,
    )


def _generate(order: Order, target: Target, stages: Stages) -> Generated:
    cell = order.cell
    if reason := _unsupported(cell):
        raise failures.Unsupported(reason)
    with stages("build"):
        subject = build(msgspec.structs.replace(cell, device="cpu", target=""))
    versions.reset()
    skips = _skips()
    skips.clear()
    recorder = Recorder()
    options = generation.modes(cell.mode)
    with stages("compile"), generation.settings(), hooks.watching(recorder):
        try:
            _capture(cell, subject, options)
        except answers.NoLaunch:
            if not versions.captures():
                raise failures.Unsupported(
                    "a Triton kernel of the model's own runs in eager, which needs the device"
                ) from None
            if versions.graph_breaks() or not versions.guard_texts(subject.module):
                recorder.assume(
                    "a Triton kernel of the model's own was not run: code after a graph break "
                    "behind it is missing"
                )
        if not versions.captures():
            raise failures.Unsupported(versions.NO_GRAPH)
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
        graphs=versions.captures(),
        operators=versions.operators(),
        forward=forward,
        backward=backward,
        graph_breaks=versions.graph_breaks(),
        cudagraph_skips=sorted(set(skips)),
        assumed=list(recorder.assumed),
    )
    if order.folder:
        files.write(Path(order.folder), cell, generated, recorder, str(torch.__version__))
    return generated


def _unsupported(cell: Cell) -> str:
    """Why no code can be generated for such a cell, or the empty string."""
    if cell.mode == EAGER or cell.mode not in MODES:
        return f"mode {cell.mode} generates no code"
    if cell.backend != "inductor":
        return f"backend {cell.backend} generates no code"
    if cell.shapes != "static":
        return f"code for a target is generated for one shape, not for the policy {cell.shapes}"
    if cell.way != "whole":
        return f"code for a target is generated for the whole module, not by the way {cell.way}"
    return ""


def _capture(cell: Cell, subject: Any, options: dict[str, Any]) -> None:
    """Call the compiled module once. Raises the first error of the compiler's."""
    errors: list[Exception] = []
    on_target = msgspec.structs.replace(cell, device=TARGET.type)

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        if not errors:
            try:
                # The cell's region is one of the CPU's; this one is the target's.
                with precision.autocast(on_target):
                    generation.compile_graph(*place(graph, inputs), options)
            except Exception as error:
                errors.append(error)
        return graph.forward

    forward = torch.compile(subject.module, backend=backend)
    # No gradients, but not torch.inference_mode: its tensors cannot become parameters.
    context = contextlib.nullcontext() if cell.phase == "training" else torch.no_grad()
    try:
        with context, precision.autocast(subject.cell):
            apply(forward, subject.inputs)
    except answers.NoLaunch:
        if not errors:
            raise
    if errors:
        raise errors[0]


@cache
def _skips() -> list[str]:
    """The list of the reasons why graphs do not run as CUDA graphs, watched once."""
    return versions.watch_cudagraph_skips()


def _explained(error: Exception) -> Exception:
    """The error to report: torch wraps errors of its parts, and ours with them."""
    seen: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting and len(seen) < 20:
        link = waiting.pop()
        if link in seen:
            continue
        seen.append(link)
        waiting += [
            inner
            for name in _LINKS
            if isinstance(inner := getattr(link, name, None), BaseException)
        ]
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
