"""Is the mode's output right? Both sides start from the same seed and the same state.

`references` makes what is compared with, `accuracy` compares. Here is decided what to believe:

1. The mode is right if it is right against one of the references.
2. A random function whose compiled code draws other numbers than eager is compiled once more, so
   that it draws eager's. Where that is not possible, two draws are compared.
3. Where gradients differ, the slope of the loss decides whether eager's are right.
4. What cannot be compared is not called right: the record says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import torch

from ..measurement import NOT_CHECKED, Accuracy
from . import accuracy, references, state
from .progress import Stages
from .references import ANOTHER, Expected, Played, Reference
from .subject import Call, Subject
from .training import TrainingStep
from .values import Parts, other_dtype
from .widened import Traced

# Of the slope of a loss. Relative to a weight of size 1: far above the rounding of a loss in
# float64, and so small that the loss is straight there.
STEP = 1e-6
DIRECTIONS = 3
# So many times as far off as the whole output may be, and as eager is, is no rounding.
BESIDE = 10.0
# Why a choice is not checked.
CHOSEN = "rounding decides what it chooses, compiled or not"
# A gradient is right if it is that near to the slopes.
RIGHT = 1e-3


class Judged(NamedTuple):
    """The comparison, and why the mode's output is wrong; empty if it is not. ``values``: whether
    the fault is one of values, which another draw or other weights may explain.
    """

    checked: Accuracy
    reason: str
    expected: Expected
    mode: Played
    values: bool = True


def check(subject: Subject, call: Call, stages: Stages, same_draws: bool = False) -> Judged:
    """Compare the call with eager. A training step that is wrong is tried with other weights.

    ``same_draws``: the call draws the numbers that eager draws. Without it one comparison says
    enough of a random function: see `check_random`.
    """
    refused: list[str] = []
    while True:
        judged = _once(subject, call, stages)
        if not judged.values:
            return judged
        if not judged.reason:
            break
        refused.append(judged.reason)
        if (judged.expected.random and not same_draws) or not subject.other_weights():
            others = f"; and so with {len(refused) - 1} other sets of weights"
            judged = judged._replace(reason=refused[0] + (others if refused[1:] else ""))
            return _by_slopes(subject, judged)
    if not refused:
        return judged
    note = (
        f"passed with set {len(refused) + 1} of weights; with set {len(refused)} a value may lie "
        f"at a corner, where rounding decides its gradient: {refused[-1]}"
    )
    return judged._replace(checked=noted(judged.checked, note))


def check_random(
    subject: Subject, judged: Judged, drawing: Call | None, why: str, stages: Stages
) -> Judged:
    """Compare a random function again, whose own draws differ from eager's.

    ``drawing``: a call whose compiled code draws eager's numbers. ``why``: why there is none; empty
    in a launch that leaves this check to another launch.
    """
    if drawing is not None:
        again = check(subject, drawing, stages, same_draws=True)
        if not again.reason:
            return again
        if again.mode.drawn == again.expected.eager.drawn:
            return again._replace(reason=f"with eager's own draws: {again.reason}")
        why = "the compiled module draws other random numbers than eager"
    return _draws(subject, judged, why)


def _by_slopes(subject: Subject, judged: Judged) -> Judged:
    """Ask the slope of the loss who is right about the gradients: eager may be wrong itself.

    Eager is what everything is compared with, in its own dtype and in float64, and its backward
    pass has kernels of its own. The slope of the loss along a direction needs no backward pass. So
    it is a third opinion (evidence/plain/batch_norm.py is a case).
    """
    if not isinstance(subject, TrainingStep) or judged.expected.random:
        return judged
    try:
        sides = (judged.expected.eager, judged.mode)
        eager, mode = _from_slopes(subject, *(side.outputs[0].leaves[1:] for side in sides))
    except Exception:
        return judged  # the module was not made for float64
    if eager <= RIGHT or mode > RIGHT:
        return judged
    note = (
        f"eager's own gradients are wrong by {eager:.2g}, those of the compiled module are right: "
        "the slope of the loss in float64, without a backward pass, decides"
    )
    checked = msgspec.structs.replace(
        judged.checked, reference="slopes", eager_error=eager, mode_error=mode, tolerance=RIGHT
    )
    return judged._replace(checked=noted(checked, note), reason="")


def _from_slopes(subject: TrainingStep, *several: Sequence[torch.Tensor]) -> list[float]:
    """How far each of the gradients is from the slope of the loss: the largest distance along a few
    random directions, over the gradient's norm.

    Gradients have a tensor for each weight that has a gradient in the module. Raises what the
    module raises in float64.
    """
    trained = [weight.grad is not None for weight in subject.module.parameters()]
    module, given = references.in_double(subject, subject.cell.device)
    start = state.State(module, given)
    weights = [each for each, own in zip(module.parameters(), trained, strict=True) if own]

    def loss() -> float:
        start.restore()
        state.seed(references.FIRST)
        return subject.loss_in_double(module, given)

    worst = [0.0] * len(several)
    for number in range(DIRECTIONS):
        maker = torch.Generator().manual_seed(number)
        direction = [
            torch.randn(each.shape, generator=maker, dtype=torch.float64).to(each.device)
            for each in weights
        ]
        slope = _slope(weights, direction, loss)
        for place, gradients in enumerate(several):
            doubles = [gradient.double() for gradient in gradients]
            norm = math.hypot(*(float(each.norm()) for each in doubles))
            pairs = zip(doubles, direction, strict=True)
            along = math.fsum(float((one * two).sum()) for one, two in pairs)
            distance = abs(slope - along) / norm if norm else math.inf
            worst[place] = max(worst[place], distance)
    return worst


def _slope(
    weights: Sequence[torch.Tensor], direction: Sequence[torch.Tensor], loss: Callable[[], float]
) -> float:
    """The slope of the loss along a direction, from two losses on both sides."""

    def move(steps: float) -> None:
        with torch.no_grad():
            for weight, each in zip(weights, direction, strict=True):
                weight.add_(each, alpha=steps * STEP)

    move(1.0)
    above = loss()
    move(-2.0)
    below = loss()
    move(1.0)
    return (above - below) / (2 * STEP)


def _once(subject: Subject, call: Call, stages: Stages) -> Judged:
    with stages("reference"):
        expected = references.expect(subject)
    with stages("accuracy"):
        mode = references.play(subject, call)
        if subject.touched():
            reason = "the compiled call changes weights that eager leaves as they are"
            return Judged(not_checked(subject, ""), reason, expected, mode, values=False)
        pairs = zip(mode.outputs, expected.eager.outputs, strict=False)
        if other := next(filter(None, (other_dtype(*each) for each in pairs)), ""):
            reason = f"the output has the dtype {other}"
            return Judged(not_checked(subject, ""), reason, expected, mode, values=False)
        if not expected.noise <= accuracy.LARGEST_OWN:
            why = "with the same seed and the same state, eager differs from itself"
            return Judged(not_checked(subject, why), "", expected, mode)
        undecided = wrong = None
        for reference, traced in references.ladder(subject, expected):
            judged = _against(subject, expected, mode, reference, traced)
            if judged.reason:
                wrong = wrong or judged
            elif _own_error(judged) > accuracy.LARGEST_OWN:
                undecided = judged
            else:
                return judged
    if undecided is not None:
        why = moved(_own_error(undecided))
        return undecided._replace(checked=unchecked(undecided.checked, why))
    assert wrong is not None  # the ladder ends with eager's own output
    if _has_own_state(subject, wrong):
        why = "a call changes the module's state, and the copy with compiled blocks has its own"
        return wrong._replace(checked=unchecked(wrong.checked, why), reason="")
    return wrong


def _has_own_state(subject: Subject, judged: Judged) -> bool:
    """Whether eager changes state that the compiled copy of the module (`subject.twin`) has for
    itself, so that no reset puts it back: all but the weights and buffers that both share.
    """
    if subject.cell.way not in ("regional", "nested-region"):
        return False
    expected, eager = judged.expected, judged.expected.eager
    pairs = zip(eager.changes, judged.mode.changes, strict=True)
    if any(own.keys() - made.keys() for own, made in pairs):
        return True
    if expected.random or any(eager.changes):
        return False
    # A number, which only the second call shows.
    second = eager.outputs[len(eager.outputs) // references.CALLS]
    return accuracy.error(second, eager.outputs[0]) > accuracy.DRAW_MULTIPLE * expected.noise


def _against(
    subject: Subject, expected: Expected, mode: Played, reference: Reference, traced: Traced
) -> Judged:
    """The worst comparison of the calls, or of the state after them."""
    dtype = subject.cell.dtype
    rounding = references.rounding(subject, expected, reference, traced)
    made = mode.outputs
    if reference.name == "same-dtype" and traced.steps:
        made = [*map(accuracy.stepped, made, expected.eager.outputs)]
    several = list(zip(expected.eager.outputs, made, reference.played.outputs, strict=True))
    compared = [accuracy.compare(*three, reference.name, rounding) for three in several]
    checked = max(compared, key=lambda one: _excess(one.mode_error, one.tolerance))
    if reference.note:
        checked = noted(checked, reference.note)
    reason = accuracy.wrong(checked)
    otherwise = reference.otherwise
    if reason and otherwise and references.chosen_alike(expected.eager, mode, otherwise):
        checked = unchecked(checked, CHOSEN)
        reason = ""
    if not reason and reference.name == "float64" and dtype == "float32" and subject.in_a_row:
        reason = next(filter(None, (accuracy.hidden(*three) for three in several)), "")
        if not reason and not expected.random:
            bound = checked.tolerance
            reason = next(filter(None, (beside_others(*three, bound) for three in several)), "")
    if not reason:
        reason = _wrong_state(subject, expected.eager, mode, reference.played, rounding)
    return Judged(checked, reason, expected, mode)


def beside_others(eager: Parts, mode: Parts, expected: Parts, tolerance: float) -> str:
    """Why a tensor of the mode's output is wrong by itself, although larger ones beside it hide
    that; empty if none is. All three are alike in structure and shape.

    Half of its values have to be off, by `BESIDE` times what the whole output may be off, and by
    `BESIDE` times what eager is: where rounding decides a choice, few are. Indices are left out:
    among equals, their order may be any. So are a few values, which differ by chance.
    """
    found = []
    for own, made, want in zip(eager.leaves, mode.leaves, expected.leaves, strict=True):
        if isinstance(made, torch.Tensor) and (
            made.is_floating_point() or made.dtype is torch.bool
        ):
            pairs = accuracy.finite_values(own, want), accuracy.finite_values(made, want)
            if pairs[0] and pairs[1] and pairs[1][1].numel() >= accuracy.LEAST_VALUES:
                found.append([*pairs[1], pairs[0][0]])
    sizes = [float(want.square().mean().sqrt()) for _, want, _ in found]
    # Beside large values, rounding alone may be all that a small one consists of.
    least = accuracy.SMALLEST_STATE * max([1.0, *sizes])
    for (made, want, own), size in zip(found, sizes, strict=True):
        off, own_off = (
            float((each - want).abs().median()) / max(size, least) for each in (made, own)
        )
        if own_off <= accuracy.LARGEST_OWN and off > BESIDE * max(tolerance, own_off):
            return (
                f"half of the values of an output tensor are off by more than {off:.2g} of its "
                f"size, where eager's are by {own_off:.2g}"
            )
    return ""


def _wrong_state(
    subject: Subject, eager: Played, mode: Played, exact: Played, rounding: float
) -> str:
    """Why the state after the calls is wrong, or the empty string."""
    for changes in zip(eager.changes, mode.changes, exact.changes, strict=True):
        for name in sorted(changes[0].keys() | changes[1].keys()):
            own, made, wanted = (subject.changed(each, name) for each in changes)
            own_error = accuracy.state_error(own, wanted)
            if not own_error <= accuracy.LARGEST_OWN:
                wanted, own_error = own, 0.0
            error = accuracy.state_error(made, wanted)
            if error > max(rounding, accuracy.MULTIPLE * own_error):
                return f"after the call, the state in {name} differs from eager's by {error:.2g}"
    return ""


def _draws(subject: Subject, judged: Judged, why: str) -> Judged:
    """Compare two draws: a random function may be no farther from eager than eager from itself."""
    another = references.play(subject, subject.eager, ANOTHER, calls=1)
    checked = accuracy.compare(
        judged.expected.eager.outputs[0],
        judged.mode.outputs[0],
        another.outputs[0],
        "another-draw",
        accuracy.tolerance_of(subject.cell.dtype, None, steps=False),
        random=True,
    )
    reason = accuracy.wrong(checked)
    if shows_nothing(checked, another.outputs[0]) or (reason and not why):
        # Where another launch compares the values, a draw that lies apart shows nothing either.
        return judged._replace(checked=unchecked(checked, why), reason="")
    if why:
        note = f"{NOT_CHECKED} value by value, only as one draw beside others: {why}"
        checked = noted(checked, note)
    return judged._replace(checked=checked, reason=reason)


def shows_nothing(checked: Accuracy, draw: Parts) -> bool:
    """Whether the comparison with another draw says nothing: two draws may be equal, as of a gate,
    and of few values one may lie apart by chance.
    """
    if checked.mode_error is None:
        # Of another structure or shape there is no error: no chance, unless eager's differ, too.
        return checked.eager_error is None
    equal = not checked.eager_error or accuracy.is_zero(draw)
    return equal or (bool(accuracy.wrong(checked)) and accuracy.few(draw))


def with_float32(checked: Accuracy, mode: object, float32: object) -> Accuracy:
    """The same with the error of a quantised module's output against that of the module before it
    was quantised.
    """
    return msgspec.structs.replace(
        checked, float32_error=accuracy.finite_or_none(accuracy.error(mode, float32))
    )


def noted(checked: Accuracy, note: str) -> Accuracy:
    """The comparison with one note more."""
    return msgspec.structs.replace(checked, notes=[*checked.notes, note])


def unchecked(checked: Accuracy, why: str) -> Accuracy:
    """The comparison without a judgement, and with the reason, if there is one."""
    checked = noted(checked, f"{NOT_CHECKED}: {why}") if why else checked
    return msgspec.structs.replace(checked, eager_error=None, mode_error=None, compared=False)


def moved(own: float) -> str:
    """Why an output is not checked from which eager is as far as ``own``."""
    return f"rounding alone moves eager by {own:.2g}"


def not_checked(subject: Subject, why: str) -> Accuracy:
    """No comparison."""
    tolerance = accuracy.tolerance_of(subject.cell.dtype, None, steps=False)
    return unchecked(Accuracy("same-dtype", None, None, tolerance), why)


def _own_error(judged: Judged) -> float:
    return judged.checked.eager_error or 0.0


def _excess(error: float | None, tolerance: float) -> float:
    return math.inf if error is None else error / tolerance
