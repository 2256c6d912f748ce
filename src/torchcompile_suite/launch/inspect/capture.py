"""Which changes of the inputs cause a new capture, and whether other capture methods are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

from ...workloads import Workload
from .. import accuracy, failures
from ..build import double, ready, to_device
from ..stream import ShapeStream
from ..subject import Inputs, apply
from . import versions


def _tensors(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Inputs], Inputs]:
    return lambda inputs: tree_map(
        lambda value: change(value) if isinstance(value, torch.Tensor) else value, inputs
    )


def _stride(value: torch.Tensor) -> torch.Tensor:
    """The same values in the same shape, with other strides."""
    if value.dim() < 2:
        return value
    return value.transpose(-1, -2).contiguous().transpose(-1, -2)


def _grad(value: torch.Tensor) -> torch.Tensor:
    return value.clone().requires_grad_() if value.is_floating_point() else value


_CHANGES: dict[str, Callable[[Inputs], Inputs]] = {
    "repeat": _tensors(torch.clone),
    "dtype": _tensors(double),
    "device": lambda inputs: to_device(inputs, "cuda"),
    "requires_grad": _tensors(_grad),
    "stride": _tensors(_stride),
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
        versions.reset()
        compiled = torch.compile(module, backend="eager")
        apply(compiled, inputs)
        before = versions.captures()
        # The module's own tensors must follow the inputs, or eager would fail as well.
        if change in _FOLLOWING:
            module.to(*_FOLLOWING[change])
        apply(compiled, larger if change == "size" else _CHANGES[change](inputs))
        module.to("cpu", torch.float32)
        counts[change] = versions.captures() - before
    return counts, unknown


def refused(subject: ShapeStream, forward: Any, requests: Sequence[Inputs]) -> int | None:
    """Of these requests, how many need a new capture now, as ``fail_on_recompile`` tells.

    A refused request is not captured, so the order makes no difference. None without requests, and
    in a release without `torch.compiler.set_stance`.
    """
    refusing = versions.refusing_to_capture()
    if refusing is None or not requests:
        return None
    count = 0
    for request in requests:
        try:
            with refusing():
                subject.serve(forward, request)
        except RuntimeError as error:
            if versions.STANCE not in str(error):
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


def check_cases(call: Any, module: torch.nn.Module, cases: Sequence[Inputs], device: str) -> None:
    """Raise `failures.WrongResult` if the compiled one differs from eager for one of the cases."""
    for number, given in enumerate(cases, 1):
        case = to_device(given, device)
        error = accuracy.error(apply(call, case), apply(module, case))
        if not error <= accuracy.TOLERANCE["float32"]:
            raise failures.WrongResult(
                f"on further input {number} of {len(cases)} the relative error is {error:.2g}"
            )
