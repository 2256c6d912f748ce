"""What needs further captures: changes of inputs, other capture methods, the share in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from ...cell import AUTOCAST, Cell
from ...workloads import Workload
from .. import accuracy, failures
from ..build import ready, to_device
from ..forward import arranged, autocast
from ..stream import ShapeStream
from ..subject import Inputs, Subject, apply
from ..values import mapped
from . import dynamo

_MARK = "in a captured graph"


def _stride(value: torch.Tensor) -> torch.Tensor:
    """The same values in the same shape, with other strides."""
    if value.dim() < 2:
        return value
    return value.transpose(-1, -2).contiguous().transpose(-1, -2)


def _double(value: torch.Tensor) -> torch.Tensor:
    return value.double() if value.is_floating_point() else value


def _grad(value: torch.Tensor) -> torch.Tensor:
    return value.clone().requires_grad_() if value.is_floating_point() else value


# Of each tensor of the inputs.
_CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "repeat": torch.clone,
    "dtype": _double,
    "device": lambda value: value.to("cuda"),
    "requires_grad": _grad,
    "stride": _stride,
}

_FOLLOWING: dict[str, tuple[Any, ...]] = {"dtype": (torch.float64,), "device": ("cuda",)}


def recaptures(workload: Workload, batch_size: int) -> tuple[dict[str, int], dict[str, str]]:
    """Captures that one change of all inputs causes, by change; and reasons, for the changes that
    cannot be tried.

    Before each change all captures are dropped. The backend generates no code.
    """
    counts: dict[str, int] = {}
    unknown: dict[str, str] = {}
    module, inputs = workload.build(batch_size)
    ready(module, train=False, device="cpu")
    larger = workload.build(batch_size + 1)[1]
    for change in (*_CHANGES, "size"):
        if change == "device" and not torch.cuda.is_available():
            unknown["recaptures.device"] = "there is only one kind of device here"
            continue
        dynamo.reset()
        compiled = torch.compile(module, backend="eager")
        apply(compiled, inputs)
        before = dynamo.captures()
        # The module's own tensors must follow the inputs, or eager would fail as well.
        if change in _FOLLOWING:
            module.to(*_FOLLOWING[change])
        apply(compiled, larger if change == "size" else mapped(_CHANGES[change], inputs))
        module.to("cpu", torch.float32)
        counts[change] = dynamo.captures() - before
    return counts, unknown


def refused(subject: ShapeStream, forward: Any, requests: Sequence[Inputs]) -> int | None:
    """Of these requests, how many need a new capture now, as ``fail_on_recompile`` tells.

    A refused request is not captured, so the order makes no difference. None without requests, and
    in a release without `torch.compiler.set_stance`.
    """
    refusing = dynamo.refusing_to_capture()
    if refusing is None or not requests:
        return None
    count = 0
    for request in requests:
        try:
            with refusing():
                subject.serve(forward, request)
        except RuntimeError as error:
            if dynamo.STANCE not in str(error):
                raise
            count += 1
    return count


def tracing(workload: Workload, batch_size: int) -> dict[str, str]:
    """Whether torch.jit.trace and torch.fx are right for the workload's other inputs, by method."""
    module, inputs = workload.build(batch_size)
    ready(module, train=False, device="cpu")
    cases = workload.cases(batch_size) if workload.cases else []
    methods: dict[str, Callable[[], Any]] = {
        "torch.jit.trace": lambda: torch.jit.trace(module, inputs, check_trace=False),
        "torch.fx.symbolic_trace": lambda: torch.fx.symbolic_trace(module),
    }
    results = {}
    with torch.no_grad():
        for name, method in methods.items():
            try:
                traced = method()
                errors = [
                    accuracy.error(apply(traced, case), apply(module, case)) for case in cases
                ]
            except Exception as error:
                results[name] = failures.one_line(f"raises {type(error).__name__}: {error}")
            else:
                results[name] = "right" if max(errors, default=0.0) < 1e-4 else "wrong result"
    return results


def check_cases(call: Any, module: torch.nn.Module, workload: Workload, cell: Cell) -> None:
    """Raise `failures.WrongResult` if the compiled one differs from eager for one of the workload's
    other inputs.
    """
    cases = workload.cases(cell.batch_size) if workload.cases else []
    lowest = getattr(torch, cell.dtype) if cell.dtype in AUTOCAST else None
    tolerance = accuracy.tolerance_of(cell.dtype, lowest, steps=cell.quantised)
    for number, given in enumerate(cases, 1):
        case = arranged(cell, to_device(given, cell.device))
        with autocast(cell):
            error = accuracy.error(apply(call, case), apply(module, case))
        if not error <= tolerance:
            raise failures.WrongResult(
                f"on further input {number} of {len(cases)} the relative error is {error:.2g}"
            )


def share(subject: Subject) -> float | None:
    """The share of operator calls of one forward call that are in graphs, from 0 to 1.

    Captures once more: a backend without code generation marks its graphs for the profiler. None
    for a model without operators. Operators that an operator calls do not count.
    """
    dynamo.reset()
    forward = torch.compile(subject.module, backend=_marking, dynamic=subject.dynamic)
    with autocast(subject.cell):
        apply(forward, subject.inputs)
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            apply(forward, subject.inputs)
    inside = outside = 0
    for event in profiler.events():
        if "::" not in event.name:
            continue
        around = _around(event)
        if not any("::" in name for name in around):
            inside += _MARK in around
            outside += _MARK not in around
    return inside / (inside + outside) if inside + outside else None


def _around(event: Any) -> list[str]:
    """The names of the events that the event is in."""
    names = []
    while (event := event.cpu_parent) is not None:
        names.append(event.name)
    return names


def _marking(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        with record_function(_MARK):
            return graph(*inputs)

    return run
