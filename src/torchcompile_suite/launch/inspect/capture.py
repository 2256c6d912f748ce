"""When is a graph captured again, and what other ways of capture make of the same module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

from ...workloads import Workload
from .. import accuracy, failures
from ..subject import Inputs, Subject, apply, double, to_device
from . import versions


def _tensors(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Inputs], Inputs]:
    return lambda inputs: tree_map(
        lambda value: change(value) if isinstance(value, torch.Tensor) else value, inputs
    )


def _stride(value: torch.Tensor) -> torch.Tensor:
    """The same values in the same shape, laid out in another order."""
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
    """Captures that one change of all inputs costs, by change; and why one cannot be tried.

    Each starts from nothing captured. Only capture counts, so nothing is generated.
    """
    found: dict[str, int] = {}
    unknown: dict[str, str] = {}
    module, inputs = workload.build(batch_size)
    module.eval()
    larger = workload.build(batch_size + 1)[1]
    for change in (*_CHANGES, "size"):
        if change == "device" and not torch.cuda.is_available():
            unknown["recaptures.device"] = "there is only one kind of device here"
            continue
        versions.reset()
        compiled = torch.compile(module, backend="eager")
        apply(compiled, inputs)
        before = versions.captures()
        # What the module itself holds has to follow its inputs, or eager would fail, too.
        if change in _FOLLOWING:
            module.to(*_FOLLOWING[change])
        apply(compiled, larger if change == "size" else _CHANGES[change](inputs))
        module.to("cpu", torch.float32)
        found[change] = versions.captures() - before
    return found, unknown


def tracing(workload: Workload, batch_size: int) -> dict[str, str]:
    """What torch.jit.trace and torch.fx make of the first of the workload's further inputs."""
    module, inputs = workload.build(batch_size)
    module.eval()
    cases = workload.cases(batch_size) if workload.cases else []
    ways: dict[str, Callable[[], Any]] = {
        "torch.jit.trace": lambda: torch.jit.trace(module, inputs, check_trace=False),
        "torch.fx.symbolic_trace": lambda: torch.fx.symbolic_trace(module),
    }
    found = {}
    with torch.no_grad():
        for name, way in ways.items():
            try:
                traced = way()
                errors = [
                    accuracy.error(apply(traced, case), apply(module, case)) for case in cases
                ]
            except Exception as error:
                found[name] = failures.one_line(f"raises {type(error).__name__}: {error}")
            else:
                found[name] = "right" if max(errors, default=0.0) < 1e-4 else "wrong result"
    return found


def check_cases(call: Any, module: torch.nn.Module, cases: Sequence[Inputs], device: str) -> None:
    """Raise WrongResult where the compiled module differs from eager on further inputs."""
    for number, given in enumerate(cases, 1):
        case = to_device(given, device)
        error = accuracy.error(apply(call, case), apply(module, case))
        if not error <= accuracy.TOLERANCE["float32"]:
            raise failures.WrongResult(
                f"on further input {number} of {len(cases)} the relative error is {error:.2g}"
            )


def check_draws(subject: Subject) -> None:
    """Raise WrongResult where a random module, given eager's own draws, differs from eager.

    Inductor draws from a generator of its own. Told to use eager's, it must return what eager
    returns from the same seed, which comparing two draws cannot show. Compiling may draw as well:
    autotuning times its candidates on random tensors. Releases that cannot be told so are compared
    as two draws only, which was done before.
    """
    drawing = versions.eager_draws()
    if drawing is None:
        return
    subject.reset()
    expected = subject.outputs(subject.eager())
    versions.reset()
    with drawing:
        call, _ = subject.compile()
        call()
        subject.reset()
        got = subject.outputs(call())
    error = accuracy.error(got, expected)
    if not error <= accuracy.TOLERANCE["bfloat16"]:
        raise failures.WrongResult(f"with eager's own draws the relative error is {error:.2g}")
