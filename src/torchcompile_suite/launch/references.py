"""What a call has to return: eager's own output, and what the output is compared with.

A reference may fail in any way: that is no fault of the module, and the next one is tried.
"""

from __future__ import annotations

import contextlib
import gc
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from ..measurement import NOT_CHECKED
from . import accuracy, device, failures, state, widened
from .state import State
from .subject import SEED, Call, Subject, weights
from .values import Parts, deep_copy, kept, mapped

# Calls of a check. A second one shows what the first leaves: state, and memory that is used again.
CALLS = 2
_STEPS = (
    f"{NOT_CHECKED} closer than to 35 dB: values are rounded to steps on the way, and a value "
    "between two steps may become one or the other"
)
FIRST, ANOTHER = SEED + 1, SEED + 2


class Played(NamedTuple):
    """What calls from the same start made.

    - ``outputs``: of each call; what is compared apart is apart.
    - ``changes``: the state after each call, by its place.
    - ``drawn``: the generators' state at the end.
    """

    outputs: list[Parts]
    changes: list[dict[str, torch.Tensor]]
    drawn: list[bytes]

    def twice(self) -> Played:
        """The same for `CALLS` calls, of which only the first was made: all are alike."""
        return self._replace(outputs=self.outputs * CALLS, changes=self.changes * CALLS)


class Reference(NamedTuple):
    """Outputs to compare with. ``name``: how they were made. ``note``: why not in float64.

    ``otherwise``: what float64 makes, if it is no reference because it chooses otherwise.
    """

    name: str
    played: Played
    note: str = ""
    otherwise: Played | None = None


class Expected(NamedTuple):
    """What eager makes of the calls of a check.

    - ``eager``: from the first seed. ``random``: another seed makes other outputs.
    - ``in_a_row``: later calls see what earlier ones have changed.
    - ``noise``: how far eager is from itself with the same seed and the same state.
    """

    eager: Played
    random: bool
    in_a_row: bool
    noise: float


def play(subject: Subject, call: Call, seed: int = FIRST, calls: int = CALLS) -> Played:
    """Make calls from the subject's start, with that seed."""
    outputs: list[Parts] = []
    changes = []
    subject.reset(seed)
    for number in range(calls):
        if number and not subject.in_a_row:
            subject.reset(seed)
        outputs += map(kept, subject.apart(call()))
        changes.append(subject.changes())
    return Played(outputs, changes, subject.drawn())


def expect(subject: Subject) -> Expected:
    """Run eager, and find out what kind of function it is."""
    subject.reset()
    before = subject.drawn()
    first = play(subject, subject.eager)
    if subject.touched():
        subject.keep_weights()
        first = play(subject, subject.eager)
    other = play(subject, subject.eager, ANOTHER, calls=1)
    spread = _distance(other, first)
    # A number that counts calls is seen by the second one only.
    second = first.outputs[len(first.outputs) // CALLS]
    moved = any(first.changes) or accuracy.error(second, first.outputs[0]) > 0
    moved = subject.in_a_row and moved
    noise = 0.0
    if spread or moved or first.drawn != before:
        noise = _distance(play(subject, subject.eager, calls=1), first)
    # Atomic additions on an accelerator make every call a little different, whatever the seed.
    random = first.drawn != before or spread > accuracy.DRAW_MULTIPLE * noise
    return Expected(first, random, subject.in_a_row and (random or moved), noise)


class FirstResult(NamedTuple):
    """What the first call returns in eager, what it is compared with, and the name of that.

    ``random``: the function is random, and it is compared with another draw. ``tolerance``: an
    error that is only rounding; None for that of the dtype. ``note``, ``otherwise``: as in
    `Reference`.
    """

    eager: Parts
    expected: Parts
    reference: str
    random: bool
    tolerance: float | None
    note: str = ""
    otherwise: Played | None = None


def first_result(subject: Subject) -> FirstResult:
    """What the first call has to return."""
    expected = expect(subject)
    eager = expected.eager.outputs[0]
    if expected.random:
        another = play(subject, subject.eager, ANOTHER, calls=1)
        return FirstResult(eager, another.outputs[0], "another-draw", True, None)
    reference, _ = next(ladder(subject, expected))
    subject.reset()
    tolerance = rounding(subject, expected, reference, widened.trace(subject.eager))
    name, played, note, otherwise = reference
    return FirstResult(eager, played.outputs[0], name, False, tolerance, note, otherwise)


def rounding(
    subject: Subject, expected: Expected, reference: Reference, traced: widened.Traced
) -> float:
    """The relative error against the reference that is only rounding."""
    dtype = subject.cell.dtype
    if reference.name == "float64":
        tolerance = accuracy.exact_tolerance_of(dtype, traced.lowest, traced.tf32)
    else:
        steps = traced.steps and any(map(accuracy.fractions, expected.eager.outputs))
        tolerance = accuracy.tolerance_of(dtype, traced.lowest, steps)
    return max(tolerance, accuracy.MULTIPLE * expected.noise)


def ladder(subject: Subject, expected: Expected) -> Iterator[tuple[Reference, widened.Traced]]:
    """References, each for the case that the ones before do not settle it, and what is known of
    eager's dtypes by then. Ends with eager's own output.
    """
    traced, why = widened.Traced(), ""
    exact: Played | None = None
    otherwise: Played | None = None
    own = Reference("same-dtype", expected.eager)
    if subject.cell.quantised:
        # Quantising changes the result by design. The compile must not change it once more.
        yield own, traced
        return
    if not expected.random:
        exact, why = _tried(subject, expected)
        if exact is not None and (why := _chosen(expected, exact)):
            otherwise, exact = exact, None
        if exact is not None:
            yield Reference("float64", exact), traced
    subject.reset()
    traced = widened.trace(subject.eager)
    if expected.random or why or traced.narrow:
        drawing = traced.drawing or _dtype(subject.module)
        wide, wide_why = _tried(subject, expected, drawing)
        if wide is not None and not (wide_why := _chosen(expected, wide)):
            yield Reference("float64", wide), traced
            exact, why = wide, ""
        why = why or wide_why
    if exact is None and subject.cell.device == "cuda":
        finer = _without_tf32(subject, expected)
        if finer is not None:
            yield Reference("float32-without-tf32", finer, _note(why)), traced
    if exact is None or traced.steps or _far(expected.eager, exact):
        note = _note(why) or (_STEPS if traced.steps else "")
        yield own._replace(note=note, otherwise=None if exact else otherwise), traced


def _note(why: str) -> str:
    return f"compared with eager in its own dtype, not in float64: {why}" if why else ""


def _tried(
    subject: Subject, expected: Expected, drawing: torch.dtype | None = None
) -> tuple[Played | None, str]:
    """The calls in float64, or None and the reason. If there is no room, on the host.

    ``drawing``: each operator is in float64, and random numbers are in this dtype.
    """
    places = [subject.cell.device]
    if subject.cell.device != "cpu" and not expected.random:  # a host draws other numbers
        places.append("cpu")
    reason = ""
    for place in places:
        try:
            return _in_double(subject, expected, place, drawing), ""
        except Exception as error:
            # Whatever it is, the module was not made for float64.
            reason = failures.said(error)
            full = failures.is_out_of_memory(error)
        # Here, because the error held what the failed call had made.
        gc.collect()
        if subject.cell.device == "cuda":
            torch.cuda.empty_cache()
        if not full:
            break
    return None, reason


def _in_double(
    subject: Subject, expected: Expected, device: str, drawing: torch.dtype | None
) -> Played:
    module, given = in_double(subject, device)
    start = State(module, given)
    outputs: list[Parts] = []
    changes = []
    state.seed(FIRST)
    for _ in range(CALLS if expected.in_a_row else 1):
        with widened.InDouble(drawing) if drawing else contextlib.nullcontext():
            result = subject.in_double(module, given)
        # To where eager's outputs are: the host may have made these.
        outputs += (_on(subject.cell.device, device, kept(part)) for part in result)
        changes.append(start.changes())
    played = Played(outputs, changes, state.drawn(subject.cell.device))
    if expected.random and played.drawn != expected.eager.drawn[: len(played.drawn)]:
        raise RuntimeError("it draws other random numbers")
    return played if expected.in_a_row else played.twice()


def in_double(subject: Subject, device: str) -> tuple[torch.nn.Module, Any]:
    """Copies of the module and of its inputs in float64, as they are at the start of a check."""
    subject.reset(FIRST)
    # What the factory has left on the host stays there.
    given = mapped(lambda value: _double(value, "cpu" if value.is_cpu else device), subject.given())
    return _copy(subject.module, device), given


def _copy(module: torch.nn.Module, device: str) -> torch.nn.Module:
    """A copy in float64 on that device, made without a copy in the module's own dtype."""
    made: dict[int, Any] = {}
    for weight in weights(module):
        if weight.is_floating_point():
            double = _double(weight, device)
            if isinstance(weight, torch.nn.Parameter):
                double = torch.nn.Parameter(double, weight.requires_grad)
            made[id(weight)] = double
    copied: torch.nn.Module = deep_copy(module, made)
    copied.to(device)
    return copied


def _double(value: torch.Tensor, device: str) -> torch.Tensor:
    """A copy of a tensor, in float64 if it is floating-point. A force is a gradient of an input."""
    dtype = torch.float64 if value.is_floating_point() else value.dtype
    made = value.detach().to(device, dtype, copy=True)
    return made.requires_grad_(value.requires_grad)


def _without_tf32(subject: Subject, expected: Expected) -> Played | None:
    """Eager with products in float32 where they are in TF32, or None where they are not."""
    if not device.has_tf32():
        return None
    backends = (torch.backends.cudnn, torch.backends.cuda.matmul)
    try:
        before = [backend.allow_tf32 for backend in backends]
    except RuntimeError:  # the user has set torch's newer settings, which must not be mixed
        return None
    if not any(before):
        return None
    try:
        for backend in backends:
            backend.allow_tf32 = False
        calls = CALLS if expected.in_a_row else 1
        played = play(subject, subject.eager, calls=calls)
    finally:
        for backend, allowed in zip(backends, before, strict=True):
            backend.allow_tf32 = allowed
    return played if expected.in_a_row else played.twice()


def _chosen(expected: Expected, exact: Played) -> str:
    """Why float64 says nothing of what eager does, or the empty string."""
    if _places(expected.eager, exact):
        return "rounding decides what it chooses, and float64 chooses otherwise"
    if expected.random and _far(expected.eager, exact):
        return "float64 draws other random numbers"
    return ""


def chosen_alike(eager: Played, mode: Played, exact: Played) -> bool:
    """Whether the mode chooses otherwise than eager in some places, as float64 does in others: in
    about as few, and with values that are about as near to eager's.
    """
    places, most = _places(eager, mode), _places(eager, exact)
    if not (0 < places <= accuracy.MULTIPLE * most + accuracy.STEPPED and math.isfinite(most)):
        return False
    own, made = (
        max(map(accuracy.error_of_fractions, each.outputs, eager.outputs)) for each in (exact, mode)
    )
    return made <= max(accuracy.TOLERANCE["float32"], accuracy.MULTIPLE * own)


def _places(one: Played, other: Played) -> float:
    """How many whole numbers of the outputs differ; infinite if structures or shapes do."""
    return sum(map(accuracy.otherwise, one.outputs, other.outputs))


def _far(eager: Played, exact: Played) -> bool:
    return _distance(eager, exact) > accuracy.LARGEST_OWN


def _distance(one: Played, other: Played) -> float:
    """The largest relative error of the first outputs, of as many calls as both have."""
    return max(map(accuracy.error, one.outputs, other.outputs))


def _dtype(module: torch.nn.Module) -> torch.dtype:
    """The dtype of the module's weights; float32 if it has none."""
    return next((one.dtype for one in weights(module) if one.is_floating_point()), torch.float32)


def _on(wanted: str, device: str, output: Parts) -> Parts:
    if device == wanted:  # what the factory has left on the host stays there
        return output
    return output._replace(leaves=mapped(lambda tensor: tensor.to(wanted), output.leaves))
