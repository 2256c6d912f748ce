"""Which wrong results does the accuracy check find? 12 faults in 6 kinds of model, made on purpose.

The faulty call stands for compiled code: it rounds otherwise than eager (it computes in a wider
dtype, and rounds once, as fused kernels do), draws the same numbers, and has one fault. So nothing
is compiled, and the table takes seconds. Run it with the Python of a release:

    PYTHONPATH=src:. PYTHON evidence/wrong_results.py
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torchcompile_suite.cell import Cell
from torchcompile_suite.launch import checks
from torchcompile_suite.launch.forward import Forward
from torchcompile_suite.launch.progress import Stages
from torchcompile_suite.launch.subject import Subject
from torchcompile_suite.launch.training import TrainingStep

ROWS, WIDTH = 16, 64
CONSTANT = 1.1
RIGHT = "right"


def _swapped(y: Any) -> Any:
    return torch.cat([y[:, 1:2], y[:, :1], y[:, 2:]], 1)


def _rounded(y: Any) -> Any:
    for factor in (1.1, 1.3, 1.7):
        y = (y * factor).bfloat16().to(y.dtype) / factor
    return y


def _zeroed(y: Any) -> Any:
    """The one of middle size: zeroing the smallest is no error, the largest is easily seen."""
    size = y.detach().abs()
    return y * (size != size.median())


# The faults that change the values themselves. The others are in `Model.faulty`.
VALUES: dict[str, Callable[[Any], Any]] = {
    "scale of 1.01": lambda y: y * 1.01,
    "one wrong row": lambda y: torch.cat([y[:-1], y[:1]]),
    "swapped channels": _swapped,
    "three roundings to bfloat16": _rounded,
    "index off by one": lambda y: y.roll(1, 1),
    "zeroed element": _zeroed,
    "wrong gradient": lambda y: 1.05 * y - (0.05 * y).detach(),
}
FAULTS = (
    *VALUES,
    "wrong in the second call",
    "wrong state",
    "sign of a buffer",
    "dropped bias",
    "constant in bfloat16",
)


class Model(nn.Module):  # type: ignore[misc]
    """Two layers, and the habits of its kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)
        self.constant = CONSTANT
        self.register_buffer("offset", torch.randn(WIDTH) * 0.3)
        self.mean: Any
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("sign", torch.ones(1))

    def forward(self, x: Any, value: Callable[[Any], Any] | None = None, wide: bool = False) -> Any:
        """``value``: the fault. ``wide``: compute in a wider dtype, as fused kernels do."""
        dtype = x.dtype
        y = nn.functional.gelu(self.first(x))
        if self.kind == "half":  # a cast in forward, which float64 cannot follow
            y = nn.functional.layer_norm(y.float(), (WIDTH,)).bfloat16()
        if self.kind == "random":
            y = y + torch.rand_like(y) * (torch.rand(1) < 0.5)
        y = self.drop(y)
        if wide:
            wider = torch.float32 if dtype == torch.bfloat16 else torch.float64
            weight, bias = (one.to(wider) for one in (self.second.weight, self.second.bias))
            y = nn.functional.linear(y.to(wider), weight, bias)
            y = (y * self.constant + self.offset.to(wider)).to(dtype)
        else:
            y = self.second(y) * self.constant + self.offset
        if self.kind == "state":
            with torch.no_grad():
                self.sign.neg_()
                self.mean = self.mean * 0.9 + 0.1 * y.mean(0)
            y = y * self.sign + self.mean
        if value is not None:
            y = value(y)
        return (y * 100).round().long() if self.kind == "integers" else y

    def faulty(self, fault: str) -> Callable[[Any], Any]:
        """The forward pass with a fault."""
        calls = 0

        def forward(x: Any) -> Any:
            nonlocal calls
            calls += 1
            value = VALUES.get(fault)
            if fault == "wrong in the second call" and calls % 2 == 0:
                value = _swapped
            before = self.second.bias.detach().clone(), self.constant, self.offset.clone()
            with torch.no_grad():
                if fault == "dropped bias":
                    self.second.bias.zero_()
                if fault == "sign of a buffer":
                    self.offset.neg_()
            if fault == "constant in bfloat16":
                self.constant = float(torch.tensor(CONSTANT).bfloat16())
            y = self(x, value, wide=True)
            self.constant = before[1]
            with torch.no_grad():
                self.second.bias.copy_(before[0])
                self.offset.copy_(before[2])
                if fault == "wrong state":
                    self.mean.add_(0.01)
            return y

        return forward


KINDS = ("plain", "random", "state", "half", "training with dropout", "integers")


def subject_of(kind: str, training: bool) -> Subject:
    """The subject of a kind of model."""
    torch.manual_seed(0)
    module, x = Model(kind).train(training), torch.randn(ROWS, WIDTH)
    if kind == "half":
        module, x = module.bfloat16(), x.bfloat16()
    if not training:
        return Forward(Cell("wrong", 1, "default"), module, (x,))
    start = copy.deepcopy(module)
    cell = Cell("wrong", 1, "default", phase="training")
    return TrainingStep(cell, module, (x,), lambda: start)


def judged(kind: str, fault: str) -> str:
    """Why the check refuses the fault in this kind of model; empty if it lets it pass."""
    # A gradient is wrong only where there is one.
    training = kind == "training with dropout" or (fault == "wrong gradient" and kind != "integers")
    subject = subject_of(kind, training)
    forward = subject.module.faulty(fault)
    with subject.context():
        for _ in range(4):
            subject.call(forward)
        found = checks.check(
            subject, lambda: subject.call(forward), Stages("wrong"), same_draws=True
        )
    assert found.checked.compared, found.checked.notes
    return found.reason


def main() -> int:
    """Print the table, and the count. The status is 1 if it is not what docs/method.md says."""
    caught = alarms = 0
    print(f"torch {torch.__version__}")
    print("| fault |", " | ".join(KINDS), "|")
    print("|---|" + "---|" * len(KINDS))
    for fault in (*FAULTS, RIGHT):
        reasons = [judged(kind, fault) for kind in KINDS]
        words = ["caught" if reason else "passed" for reason in reasons]
        print(f"| {fault} |", " | ".join(words), "|")
        if fault == RIGHT:
            alarms = sum(map(bool, reasons))
        else:
            caught += sum(map(bool, reasons))
    print(f"\n{caught} of {len(FAULTS) * len(KINDS)} caught, {alarms} false alarms")
    return int(caught < 69 or alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
