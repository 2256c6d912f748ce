"""Inputs and outputs of any kind: copied, changed leaf by leaf, and taken apart for a comparison.

torch's pytree opens tuples, lists, dicts and registered classes, and is enough for what an operator
takes (`leaves`). Users' inputs are also dataclasses and mappings (`mapped`, `tensors`). Models also
return other containers: subclasses of Sequence, objects with tensors in their attributes. `parts`
opens these, and names everything else in `Parts.unchecked`.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import resource
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

if TYPE_CHECKING:
    from .device import Device

# Containers inside containers, at most; more than any model's output has.
DEEPEST = 12
# Values that are compared with ``==``.
_PLAIN = (Number, str, bytes, type(None), enum.Enum, torch.dtype, torch.device, torch.layout)
# Parts of a program, whose attributes are neither outputs nor state.
CODE = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
)
# Objects with attributes that are not outputs, or that change when they are read.
_CLOSED = (*CODE, Iterator, torch.nn.Module, torch.Generator)


def leaves(value: Any) -> list[torch.Tensor]:
    """The tensors that pytree finds in the value."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def mapped(change: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """The value with each tensor changed. Opens dataclasses and mappings, too."""

    def changed(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return change(leaf)
        made: Any
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            made = copy.copy(leaf)
            for field in dataclasses.fields(leaf):
                # Also a field of a frozen class.
                object.__setattr__(made, field.name, mapped(change, getattr(leaf, field.name)))
            return made
        if isinstance(leaf, Mapping):
            made = copy.copy(leaf)
            for name, part in leaf.items():
                made[name] = mapped(change, part)
            return made
        return leaf

    return tree_map(changed, value)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of the value, in the order of `mapped`."""
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    mapped(note, value)
    return found


def of_inputs(value: Any) -> list[torch.Tensor]:
    """The tensors of inputs; where `tensors` finds none, those that plain objects hold."""
    return tensors(value) or opened(value)


def copied(value: Any) -> Any:
    """A deep copy that is no tensor of inference mode, which guards and autograd treat apart."""
    with torch.inference_mode(False):
        return deep_copy(value)


def deep_copy(value: Any, made: dict[int, Any] | None = None) -> Any:
    """A deep copy, also of what torch refuses to copy: nested tensors, tensors of a subclass
    without ``new_empty``, and tensors that autograd has computed, such as a module keeps. What a
    tensor was computed from is not copied.

    ``made``: copies that are there already, by the id of the original.
    """

    def copy_tensor(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        if id(tensor) not in memo:
            if tensor.is_leaf and not tensor.is_nested:
                try:
                    return original(tensor, memo)
                except RuntimeError:
                    # A subclass. torch calls this function again within, with the subclass turned
                    # off: that call has to raise, or its copy would come without attributes.
                    if not torch._C._is_torch_function_enabled():
                        raise
            cloned = memo[id(tensor)] = tensor.detach().clone()
            cloned.requires_grad_(tensor.requires_grad)
            cloned.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
        return memo[id(tensor)]

    original = torch.Tensor.__deepcopy__
    with mock.patch.object(torch.Tensor, "__deepcopy__", copy_tensor):
        return copy.deepcopy(value, made)


def changed(value: Any, before: Any) -> bool:
    """Whether a call has changed the inputs: their tensors, or what their containers hold."""
    now, then = opened(value), opened(before)
    if len(now) != len(then) or len(tree_leaves(value)) != len(tree_leaves(before)):
        return True
    return not all(map(same, now, then))


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether shape, dtype, layout and values are equal. NaN equals NaN."""
    if one.is_nested or other.is_nested:
        if not (one.is_nested and other.is_nested and one.size(0) == other.size(0)):
            return False
        return all(map(same, one.unbind(), other.unbind()))
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.layout != torch.strided:
        one, other = one.to_dense(), other.to_dense()
    if torch.equal(one, other):
        return True
    return bool(((one == other) | ((one != one) & (other != other))).all())


class Used(NamedTuple):
    """What a process has used: page faults, and seconds of the processors in the kernel and out of
    it.
    """

    faults: int = 0
    kernel_s: float = 0.0
    user_s: float = 0.0


def used() -> Used:
    """What this process has used so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Used(usage.ru_minflt, usage.ru_stime, usage.ru_utime)


class Restoring:
    """A call whose inputs are as they were again after it. ``used``: what timed calls have used."""

    def __init__(self, call: Callable[[], Any], restore: Callable[[], object]) -> None:
        """``restore`` is called after each call, outside the clock."""
        self.inner = call
        self.restore = restore
        self.used = Used()

    def __call__(self) -> Any:
        """The result of the call."""
        try:
            return self.inner()
        finally:
            self.restore()

    def timed(self, on: Device, count: int) -> float:
        """Seconds a call, over ``count`` calls. The clock is read around each, and the usage."""
        seconds = 0.0
        for _ in range(count):
            on.synchronize()
            before = used()
            start = time.perf_counter()
            self.inner()
            on.synchronize()
            seconds += time.perf_counter() - start
            after, so_far = used(), self.used
            self.used = Used(
                so_far.faults + after.faults - before.faults,
                so_far.kernel_s + after.kernel_s - before.kernel_s,
                so_far.user_s + after.user_s - before.user_s,
            )
            self.restore()
        return seconds / count


class Parts(NamedTuple):
    """An output, taken apart.

    - ``structure``: equal for two outputs with the same nesting, types and keys.
    - ``leaves``: the tensors and plain values, in the order of the structure.
    - ``unchecked``: names of the types that could not be opened.
    """

    structure: list[Any]
    leaves: list[Any]
    unchecked: list[str]


def parts(output: Any) -> Parts:
    """Take an output apart, unless it is. Never raises for what the output is."""
    if isinstance(output, Parts):
        return output
    taken = Parts([], [], [])
    _add(output, taken, frozenset(), set(), tensors_only=False)
    return taken._replace(unchecked=list(dict.fromkeys(taken.unchecked)))


def kept(output: Any) -> Parts:
    """The parts of an output as they are now: later calls may write to the output's memory."""
    taken = parts(output)
    leaves = [
        leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in taken.leaves
    ]
    return taken._replace(leaves=leaves)


def other_dtype(output: Parts, expected: Parts) -> str:
    """Which dtype an output has instead of the expected one; empty if all are the same."""
    for got, want in zip(output.leaves, expected.leaves, strict=False):
        both = isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)
        if both and got.dtype != want.dtype:
            return f"{got.dtype} instead of {want.dtype}".replace("torch.", "")
    return ""


def opened(output: Any) -> list[torch.Tensor]:
    """The tensors of an output, of all that `parts` opens."""
    return [leaf for leaf in parts(output).leaves if isinstance(leaf, torch.Tensor)]


def copied_output(output: Any) -> Any:
    """The output with a copy of each tensor, in containers of their own."""
    found = opened(output)  # alive until the end: an id may belong to another object afterwards
    return copy.deepcopy(output, {id(tensor): tensor.detach().clone() for tensor in found})


def _add(
    value: Any, taken: Parts, around: frozenset[int], opened_ids: set[int], tensors_only: bool
) -> None:
    """Add a value's parts.

    ``around``: the ids of the containers around it. ``opened_ids``: the ids of the objects whose
    attributes were read. Objects that refer to each other are on too many paths to follow them all.
    """
    if isinstance(value, torch.Tensor) and not (value.is_meta or value.is_nested):
        taken.structure.append("tensor")
        taken.leaves.append(value)
        return
    if isinstance(value, _PLAIN):
        if not tensors_only:
            taken.structure.append("value")
            taken.leaves.append(value)
        return
    opened = None
    if id(value) not in around and len(around) < DEEPEST:
        with contextlib.suppress(Exception):  # of code of the output's own class
            opened = _open(value)
    if opened is not None:
        kind, children = opened
        taken.structure.append(kind)
        for child in children:
            _add(child, taken, around | {id(value)}, opened_ids, tensors_only)
    elif not _add_attributes(value, taken, around, opened_ids) and not tensors_only:
        taken.structure.append("unchecked")
        taken.unchecked.append(type(value).__qualname__)


def _open(value: Any) -> tuple[Any, Iterable[Any]] | None:
    """What distinguishes this container from others, and its children; None if it is none."""
    name = type(value).__qualname__
    if isinstance(value, torch.Tensor):
        return ("nested", value.unbind()) if value.is_nested else None
    children, structure = tree_flatten(value)
    if not (len(children) == 1 and children[0] is value):
        return structure, children
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return (name, *names), [getattr(value, field, None) for field in names]
    if isinstance(value, Mapping):
        keys = list(value)
        return (name, *map(repr, keys)), [value[key] for key in keys]
    if isinstance(value, Sequence) and not isinstance(value, bytearray | memoryview):
        children = list(value)
        return (name, len(children)), children
    if hasattr(type(value), "__array__"):
        return name, [torch.as_tensor(value)]
    return None


def _add_attributes(value: Any, taken: Parts, around: frozenset[int], opened_ids: set[int]) -> bool:
    """Add the tensors in an object's attributes, once; False if there are none.

    Only tensors: other attributes may be caches or time stamps, which differ without a fault.
    """
    if isinstance(value, _CLOSED) or id(value) in around or len(around) >= DEEPEST:
        return False
    if id(value) in opened_ids:
        return True
    opened_ids.add(id(value))
    inside = Parts([], [], [])
    for name, attribute in _attributes(value).items():
        one = Parts([], [], [])
        _add(attribute, one, around | {id(value)}, opened_ids, tensors_only=True)
        if one.leaves:
            inside.structure.append((name, one.structure))
            inside.leaves.extend(one.leaves)
    if not inside.leaves:
        return False
    taken.structure.append((type(value).__qualname__, inside.structure))
    taken.leaves.extend(inside.leaves)
    return True


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes that the object itself holds, in ``__dict__`` and in ``__slots__``."""
    slots = [
        name
        for owner in type(value).__mro__
        for name, member in vars(owner).items()
        if isinstance(member, types.MemberDescriptorType)
    ]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})
