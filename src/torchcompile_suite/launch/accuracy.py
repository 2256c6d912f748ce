"""Does the compiled model compute the same function? Checked after all timing.

The rule follows PyTorch's ``benchmarks/dynamo/common.py``. The reference is eager in float64. The
compiled output may be a few times as far from the reference as eager in the working dtype is: a
compiler may reorder float operations, but it must not lose digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import torch

from ..cell import QUANTISATIONS
from ..measurement import Accuracy
from .values import Parts, opened, parts

# Relative root mean square error that is only rounding, by working dtype: some thousand units in
# the last place, which a deep network accumulates.
#
# With int8, compiled and eager round to integers at almost the same places: a value that lies
# between two integers may become one or the other, and each of them is an error of a whole step.
# torchao's own tests ask for a signal-to-noise ratio of 35 dB, compiled, too (min_sqnr of
# `_test_lin_weight_subclass_api_impl` in test/integration/test_integration.py). It is this error.
_35_DB = 10 ** (-35 / 20)
TOLERANCE = {
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 5e-2,
    **dict.fromkeys(QUANTISATIONS, _35_DB),
}
# The compiled output may be this many times as far from the float64 reference as eager's output.
MULTIPLE = 3.0
# The same for outputs of so few values: two roundings of one value differ by chance. It is that of
# PyTorch's own check (`same` in torch/_dynamo/utils.py); here never beyond what `MULTIPLE` times
# the largest own error (`LARGEST_OWN`) would let pass.
FEW, FEW_MULTIPLE = 10, 10.0
# The same for random outputs, where the reference is another draw.
DRAW_MULTIPLE = 1.5
# Eager that is farther from its reference than this says nothing of the compiled output: three
# times the distance would let any value pass.
LARGEST_OWN = 0.1
# Above this own error, eager's rounding hides a wrong scale and a single wrong value in the root
# mean square. There these two are looked for: a scale that is off by more than eager's whole error,
# and a value that is this many times as far off as eager's worst. It takes some values to tell.
HIDING = 1e-3
OUTLIER = 5.0
LEAST_VALUES = 16
# So many whole numbers, or this share of them, may be one step off where values were rounded.
STEPPED, STEPPED_SHARE = 3, 0.003
# Values of a state below this are compared absolutely: a mean near zero has no digits.
SMALLEST_STATE = 1e-3
# An error relative to zeros is huge, and finite: eager may have it, too.
_SMALLEST_NORM = 1e-30
# Notes name this many types at most.
MOST_TYPES = 3


def tolerance_of(dtype: str, lowest: torch.dtype | None, steps: bool) -> float:
    """What is only rounding between two outputs in the same dtype.

    ``dtype``: that of the cell. ``lowest``: the floating dtype with the fewest digits that a value
    had on its way. ``steps``: a value was rounded to steps, and may be a whole step off.
    """
    by_name = TOLERANCE.get(str(lowest).removeprefix("torch."))
    if by_name is None:  # eight bits and fewer: some units in the last place
        wide = lowest is None or torch.finfo(lowest).bits > 16
        by_name = TOLERANCE["float32"] if wide else torch.finfo(lowest).eps
    return max(TOLERANCE.get(dtype, TOLERANCE["float32"]), by_name, _35_DB if steps else 0.0)


def exact_tolerance_of(dtype: str, lowest: torch.dtype | None, tf32: bool) -> float:
    """What is only rounding between an output and one in float64: at least one rounding of the
    output itself, in the dtype with the fewest digits. The arguments are those of `tolerance_of`.

    ``tf32``: products may have had the digits of TF32. Which of the two sides has them is up to the
    library: it may choose another algorithm for another layout.
    """
    last = 0.0 if lowest is None else torch.finfo(lowest).eps / 2
    last = max(last, torch.finfo(torch.float16).eps / 2) if tf32 else last
    return max(TOLERANCE.get(dtype, TOLERANCE["float32"]), last)


def error(output: Any, expected: Any) -> float:
    """The relative error: root mean square of the difference, over that of the expected values.

    It is taken over all tensors together, and once more without those of whole numbers: a table of
    indices must not hide what stands beside it. Infinite if the structures, the shapes or the
    non-finite values differ. 0.0 if there is nothing to compare. Of expected zeros any difference
    is a huge error, which rounding may have, too.
    """
    return max(_errors(output, expected))


def error_of_fractions(output: Any, expected: Any) -> float:
    """The same without tensors of whole numbers."""
    return _errors(output, expected)[0]


def _errors(output: Any, expected: Any) -> tuple[float, float]:
    """The error of the tensors with fractions, and that of all; plain values are in both."""
    output, expected = parts(output), parts(expected)
    if output.structure != expected.structure:
        return math.inf, math.inf
    squares, norm = [0.0, 0.0], [0.0, 0.0]  # of tensors with fractions, and of whole numbers
    largest = 0.0
    for got, want in zip(output.leaves, expected.leaves, strict=True):
        if not isinstance(want, torch.Tensor):
            largest = max(largest, _plain_error(got, want))
            continue
        numbers = finite_values(got, want)
        if numbers is None:
            return math.inf, math.inf
        squares[_whole(want)] += float(((numbers[0] - numbers[1]) ** 2).sum())
        norm[_whole(want)] += float((numbers[1] ** 2).sum())
    fractions = math.sqrt(squares[0]) / (math.sqrt(norm[0]) or _SMALLEST_NORM)
    every = math.sqrt(sum(squares)) / (math.sqrt(sum(norm)) or _SMALLEST_NORM)
    # Sums that overflow agree about nothing.
    fractions, every = (math.inf if math.isnan(one) else one for one in (fractions, every))
    return max(largest, fractions), max(largest, every)


def finite_values(got: Any, want: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The finite values of both in float64; None if the shapes or the non-finite values differ."""
    if not isinstance(got, torch.Tensor) or got.shape != want.shape:
        return None
    got, want = _numbers(got, want), _numbers(want, got)
    # The shapes of a complex tensor and of a real one differ now.
    if got.shape != want.shape:
        return None
    finite = torch.isfinite(want)
    strange = ~finite
    if not torch.equal(torch.isfinite(got), finite) or not torch.allclose(
        got[strange], want[strange], equal_nan=True
    ):
        return None
    return got[finite], want[finite]


def otherwise(output: Parts, expected: Parts) -> float:
    """How many whole numbers differ; infinite if structures or shapes do."""
    if not alike_shapes(output, expected):
        return math.inf
    count = 0
    for got, want in zip(output.leaves, expected.leaves, strict=True):
        if isinstance(want, torch.Tensor):
            if _whole(want):
                count += int((_numbers(got) != _numbers(want)).sum())
        elif isinstance(want, Integral):
            count += got != want
    return count


def is_zero(output: Parts) -> bool:
    """Whether the output has tensors, and nothing but zeros in them."""
    tensors = opened(output)
    return bool(tensors) and not any(bool(_numbers(each).any()) for each in tensors)


def alike_shapes(output: Parts, expected: Parts) -> bool:
    """Whether the structures and all shapes are the same."""
    return output.structure == expected.structure and all(
        getattr(got, "shape", None) == getattr(want, "shape", None)
        for got, want in zip(output.leaves, expected.leaves, strict=True)
    )


def few(output: Parts) -> bool:
    """Whether the output has a few values with fractions."""
    return 0 < _values(output) <= FEW


def _values(output: Parts) -> int:
    tensors: int = sum(leaf.numel() for leaf in opened(output) if not _whole(leaf))
    return tensors + sum(isinstance(leaf, float) for leaf in output.leaves)


def fractions(output: Parts) -> bool:
    """Whether the output has tensors of other than whole numbers."""
    return not all(map(_whole, opened(output)))


def _whole(tensor: torch.Tensor) -> bool:
    """Whether the tensor has whole numbers or truth values."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized)


def state_error(got: torch.Tensor | None, want: torch.Tensor | None) -> float:
    """The relative error of a tensor of a state. Each counts by itself: a counter in the millions
    must not hide a mean.
    """
    numbers = None if got is None or want is None else finite_values(got, want)
    if numbers is None:
        return math.inf
    if not numbers[1].numel():
        return 0.0
    distance = float((numbers[0] - numbers[1]).square().mean().sqrt())
    size = float(numbers[1].square().mean().sqrt())
    return distance / max(size, SMALLEST_STATE)


def _plain_error(got: Any, want: Any) -> float:
    """Of a value that is no tensor: relative for floats above 1, absolute for smaller ones."""
    if isinstance(want, Real) and not (isinstance(want, Integral) and isinstance(got, Integral)):
        if not isinstance(got, Real):
            return math.inf
        got, want = float(got), float(want)
        if math.isfinite(got) and math.isfinite(want):
            return float(abs(got - want) / max(abs(want), 1.0))
        return 0.0 if got == want or (math.isnan(got) and math.isnan(want)) else math.inf
    return 0.0 if got == want else math.inf


def _numbers(tensor: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    """The tensor's values in float64, to be compared with those of the others.

    From the ends of their narrowest floating dtype on they are infinite: code masks with them,
    those of float64 are others, and as numbers they would hide all else.
    """
    numbers = _doubles(tensor)
    if not tensor.is_floating_point():
        return numbers
    floating = (one.dtype for one in (tensor, *others) if one.is_floating_point())
    ends = [end for dtype in floating if (end := torch.finfo(dtype)).bits >= 16]
    if not ends:
        return numbers
    most = min(end.max for end in ends)
    numbers = numbers.masked_fill(numbers <= -most, -math.inf)
    return numbers.masked_fill(numbers >= most, math.inf)


def _doubles(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values in float64; real and imaginary parts of a complex one."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.double()


def compare(
    eager: Any, mode: Any, expected: Any, reference: str, tolerance: float, random: bool = False
) -> Accuracy:
    """The errors of eager's and the mode's output against the expected one, and the bound.

    If the function is ``random``, the expected output is another draw: two independent draws are
    about equally far from it. Otherwise eager's own values replace the expected ones where either
    is non-finite, so the mode has to be non-finite where eager is. ``reference``: the name of the
    expected one. ``tolerance``: an error that is only rounding.
    """
    eager_parts, mode_parts, expected_parts = parts(eager), parts(mode), parts(expected)
    notes = [
        *_non_finite(eager_parts, random),
        *_unchecked([*eager_parts.unchecked, *mode_parts.unchecked]),
    ]
    if not random:
        expected_parts = _where_finite(expected_parts, eager_parts)
    eager_error = error(eager_parts, expected_parts)
    mode_error = error(mode_parts, expected_parts)
    if math.isfinite(eager_error):
        tolerance = max(tolerance, (DRAW_MULTIPLE if random else MULTIPLE) * eager_error)
        if few(expected_parts) and not random:
            tolerance = max(tolerance, min(FEW_MULTIPLE * eager_error, MULTIPLE * LARGEST_OWN))
    same = eager_parts.structure == mode_parts.structure
    compared = not same or bool(eager_parts.leaves) or not eager_parts.unchecked
    return Accuracy(
        reference=reference,
        eager_error=finite_or_none(eager_error) if compared else None,
        mode_error=finite_or_none(mode_error) if compared else None,
        tolerance=tolerance,
        notes=notes,
        compared=compared,
    )


def hidden(eager: Parts, mode: Parts, expected: Parts) -> str:
    """What is wrong with the mode's output although its error is no larger than rounding; empty if
    nothing is. All three are alike in structure and shape.
    """
    eager_error = error(eager, expected)
    if not HIDING < eager_error <= LARGEST_OWN or _values(expected) < LEAST_VALUES:
        return ""
    product = norm = worst = own_worst = 0.0
    for own, got, want in zip(eager.leaves, mode.leaves, expected.leaves, strict=True):
        if not (isinstance(want, torch.Tensor) and want.is_floating_point() and want.numel()):
            continue
        every = (own, got, want)
        own, got, want = (_numbers(one, *every) for one in every)
        finite = torch.isfinite(want) & torch.isfinite(own) & torch.isfinite(got)
        own, got, want = own[finite], got[finite], want[finite]
        product += float((got * want).sum())
        norm += float(want.square().sum())
        if want.numel():
            worst = max(worst, float((got - want).abs().max()))
            own_worst = max(own_worst, float((own - want).abs().max()))
    if norm and abs(product / norm - 1) > eager_error:
        return (
            f"all values are scaled by {product / norm:.4g} against float64 (eager's own error: "
            f"{eager_error:.2g})"
        )
    if worst > OUTLIER * own_worst:
        return (
            f"one value is off by {worst:.2g} against float64, where eager is by at most "
            f"{own_worst:.2g}"
        )
    return ""


def stepped(mode: Parts, eager: Parts) -> Parts:
    """The mode's output with eager's whole numbers, if few of them are one step off: a value that
    lies between two steps may become one or the other.
    """
    if not alike_shapes(mode, eager):
        return mode
    leaves = []
    for got, want in zip(mode.leaves, eager.leaves, strict=True):
        if isinstance(want, torch.Tensor) and _whole(want) and want.dtype != torch.bool:
            off = (_numbers(got) - _numbers(want)).abs()
            most = max(STEPPED, STEPPED_SHARE * want.numel())
            if float(off.max() if off.numel() else 0.0) <= 1 and int(off.sum()) <= most:
                got = want
        leaves.append(got)
    return mode._replace(leaves=leaves)


def _where_finite(expected: Parts, eager: Parts) -> Parts:
    """The expected output, with eager's values where one of the two is non-finite, and with eager's
    plain values that are no numbers.
    """
    if expected.structure != eager.structure:
        return expected
    leaves = []
    for want, value in zip(expected.leaves, eager.leaves, strict=True):
        if isinstance(want, torch.Tensor) and isinstance(value, torch.Tensor):
            if want.shape == value.shape and want.is_complex() == value.is_complex():
                numbers, eagers = _numbers(want, value), _numbers(value, want)
                finite = torch.isfinite(numbers) & torch.isfinite(eagers)
                if not finite.all():
                    want = torch.where(finite, numbers, eagers)
                    want = torch.view_as_complex(want) if value.is_complex() else want
        elif isinstance(want, float) and isinstance(value, float) and not math.isfinite(value):
            want = value
        elif not isinstance(want, Real | torch.Tensor) and not isinstance(value, torch.Tensor):
            want = value  # a dtype, say, which is another one in the float64 reference
        leaves.append(want)
    return expected._replace(leaves=leaves)


def _non_finite(eager: Parts, random: bool) -> list[str]:
    """A note if eager's output has NaN or infinite values; else nothing."""
    count = total = 0
    for leaf in eager.leaves:
        if isinstance(leaf, torch.Tensor):
            finite = torch.isfinite(_doubles(leaf))
            total += finite.numel()
            count += finite.numel() - int(finite.sum())
        elif isinstance(leaf, float):
            total += 1
            count += not math.isfinite(leaf)
    if not count:
        return []
    note = f"{count:,} of {total:,} values of eager's output are NaN or infinite"
    return [note if random else f"{note}: the compiled output must be so at the same places"]


def _unchecked(names: Iterable[str]) -> list[str]:
    """One note for each of the types that cannot be compared."""
    types = list(dict.fromkeys(name[:100] for name in names))
    notes = [f"outputs of type {name}: accuracy not checked" for name in types[:MOST_TYPES]]
    if len(types) > MOST_TYPES:
        notes.append(f"outputs of {len(types) - MOST_TYPES} more types: accuracy not checked")
    return notes


def finite_or_none(value: float) -> float | None:
    """An error, as it is recorded: JSON has no infinity. None means that the outputs cannot be
    compared number by number.
    """
    return value if math.isfinite(value) else None


def wrong(accuracy: Accuracy) -> str:
    """Why the mode's output is wrong, or the empty string."""
    if not accuracy.compared:
        return ""
    if accuracy.mode_error is None:
        return "structure, shape or non-finite values differ from eager's"
    if accuracy.mode_error > accuracy.tolerance:
        own = "unknown" if accuracy.eager_error is None else f"{accuracy.eager_error:.2g}"
        return (
            f"relative error {accuracy.mode_error:.2g} against {accuracy.reference} exceeds "
            f"{accuracy.tolerance:.2g} (eager's own: {own})"
        )
    return ""
