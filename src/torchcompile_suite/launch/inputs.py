"""Inputs of any kind: copied, changed leaf by leaf, and kept as the user gave them."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from .device import Device


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


def copied(value: Any) -> Any:
    """A deep copy that is no tensor of inference mode, which guards and autograd treat apart."""
    with torch.inference_mode(False):
        # torch copies neither of these deeply; what a tensor was computed from is no input.
        copies = {
            id(tensor): tensor.detach().clone().requires_grad_(tensor.requires_grad)
            for tensor in tensors(value)
            if tensor.is_nested or not tensor.is_leaf
        }
        return copy.deepcopy(value, copies)


def changed(value: Any, before: Any) -> bool:
    """Whether a call has changed the inputs: their tensors, or what their containers hold."""
    now, then = tensors(value), tensors(before)
    if len(now) != len(then) or len(tree_leaves(value)) != len(tree_leaves(before)):
        return True
    return not all(map(_equal, now, then))


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.is_nested or other.is_nested:
        if not (one.is_nested and other.is_nested and one.size(0) == other.size(0)):
            return False
        return all(map(_equal, one.unbind(), other.unbind()))
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.layout != torch.strided:
        one, other = one.to_dense(), other.to_dense()
    if one.is_floating_point() or one.is_complex():
        return bool(torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True))
    return bool(torch.equal(one, other))


class Restoring:
    """A call whose inputs are as they were again after it."""

    def __init__(self, call: Callable[[], Any], restore: Callable[[], object]) -> None:
        """``restore`` is called after each call, outside the clock."""
        self._call = call
        self._restore = restore

    def __call__(self) -> Any:
        """The result of the call."""
        try:
            return self._call()
        finally:
            self._restore()

    def timed(self, on: Device, count: int) -> float:
        """Seconds a call, over ``count`` calls. The clock is read around each."""
        seconds = 0.0
        for _ in range(count):
            on.synchronize()
            start = time.perf_counter()
            self._call()
            on.synchronize()
            seconds += time.perf_counter() - start
            self._restore()
        return seconds / count
