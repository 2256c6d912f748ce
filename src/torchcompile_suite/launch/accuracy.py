"""Is the compiled model still the same function? Asked before any timing.

The rule follows the accuracy ladder of PyTorch's own ``benchmarks/dynamo/common.py``: the
compiled output is compared with eager in float64 and may be a few times as far from it as eager
in the working dtype is, since reordering float operations is allowed and losing digits is not.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from ..cell import Accuracy

# Relative root mean square error that is rounding and nothing else, by working dtype: some
# thousand units in the last place, what a deep network accumulates.
TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
# How much farther from the float64 reference than eager the compiled output may be.
MULTIPLE = 3.0
# How much farther from another draw than eager's is, where outputs are random.
DRAW_MULTIPLE = 1.5


def error(output: Any, expected: Any) -> float:
    """Root mean square of the difference over that of the expected, over all tensors.

    Infinite when the structures, shapes or non-finite values differ, 0.0 when both are empty.
    """
    outputs, structure = tree_flatten(output)
    expecteds, expected_structure = tree_flatten(expected)
    if structure != expected_structure:
        return math.inf
    squares = norm = 0.0
    for got, want in zip(outputs, expecteds, strict=True):
        if not isinstance(want, torch.Tensor):
            if got != want:
                return math.inf
            continue
        if not isinstance(got, torch.Tensor) or got.shape != want.shape:
            return math.inf
        got, want = got.detach().double(), want.detach().double()
        finite = torch.isfinite(want)
        if not torch.equal(torch.isfinite(got), finite):
            return math.inf
        squares += float(((got - want)[finite] ** 2).sum())
        norm += float((want[finite] ** 2).sum())
    if norm == 0.0:
        return 0.0 if squares == 0.0 else math.inf
    return math.sqrt(squares / norm)


def compare(
    eager: Any, mode: Any, expected: Any, reference_name: str, dtype: str, random: bool = False
) -> Accuracy:
    """The errors of both outputs against the expected one, and the bound for the mode's.

    Of a ``random`` function the expected one is another draw, from which two independent draws lie
    about equally far.
    """
    eager_error = error(eager, expected)
    mode_error = error(mode, expected)
    tolerance = TOLERANCE.get(dtype, 1e-4)
    if math.isfinite(eager_error):
        tolerance = max(tolerance, (DRAW_MULTIPLE if random else MULTIPLE) * eager_error)
    return Accuracy(
        reference=reference_name,
        eager_error=_json(eager_error),
        mode_error=_json(mode_error),
        tolerance=tolerance,
    )


def _json(value: float) -> float | None:
    # JSON has no infinity: None says that the outputs cannot be compared number by number.
    return value if math.isfinite(value) else None


def wrong(accuracy: Accuracy) -> str:
    """Why the mode's output is wrong, or the empty string."""
    if accuracy.mode_error is None:
        return "structure, shape or non-finite values differ from eager's"
    if accuracy.mode_error > accuracy.tolerance:
        return (
            f"relative error {accuracy.mode_error:.2g} against {accuracy.reference} exceeds "
            f"{accuracy.tolerance:.2g} (eager's own: {accuracy.eager_error})"
        )
    return ""
