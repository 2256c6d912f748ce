"""Calls that are one forward pass: plain, in another dtype, quantised."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map

from ..cell import Cell
from ..request import Side
from .precision import autocast
from .quantisation import quantised
from .subject import Inputs, Subject, apply


class Forward(Subject):
    """One forward pass with the same inputs in every call."""

    def __init__(self, cell: Cell, module: torch.nn.Module, inputs: Inputs) -> None:
        """With the protocol ``data-inside``, each call makes its inputs anew."""
        self._fresh_inputs = cell.protocol == "data-inside"
        super().__init__(cell, module, inputs)

    def call(self, forward: Any) -> Any:
        """The outputs of the forward pass."""
        with autocast(self.cell):
            return apply(forward, self._made(self.inputs))

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """See `Subject.in_double`."""
        return [apply(module, self._made(given))]

    def _made(self, inputs: Inputs) -> Inputs:
        return tree_map(_fresh, inputs) if self._fresh_inputs else inputs


class ForwardAgainstFloat32(Forward):
    """A forward pass in another dtype, paired with eager in float32."""

    def baseline(self) -> Any:
        """The forward pass without the autocast region."""
        return apply(self.module, self.inputs)


class Quantised(ForwardAgainstFloat32):
    """A forward pass of a quantised module, paired with the module in float32 in eager."""

    def __init__(self, cell: Cell, module: torch.nn.Module, inputs: Inputs) -> None:
        """Quantises a copy of the module. Raises `failures.Unsupported` if that is not possible."""
        super().__init__(cell, quantised(module, cell.dtype), inputs)
        self._float32 = module

    def baseline(self) -> Any:
        """The forward pass of the module before it was quantised."""
        return apply(self._float32, self.inputs)

    @contextlib.contextmanager
    def alone(self, side: Side) -> Iterator[bool]:
        """See `Subject.alone`. The module in float32 leaves an accelerator meanwhile.

        The quantised one stays: its compiled code knows where its weights are.
        """
        if side == "eager" or self.cell.device == "cpu":
            yield False
            return
        # A weight that is made in inference mode would be another kind of tensor.
        with torch.inference_mode(False), torch.no_grad():
            self._float32.to("cpu")
        try:
            yield True
        finally:
            with torch.inference_mode(False), torch.no_grad():
                self._float32.to(self.cell.device)

    def in_float32(self) -> Any:
        """See `Subject.in_float32`."""
        return self.outputs(self.baseline())


def _fresh(value: Any) -> Any:
    """A new tensor of the same kind; random numbers if it is floating-point."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.randn_like(value) if value.is_floating_point() else value.clone()
