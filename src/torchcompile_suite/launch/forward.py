"""Calls that are one forward pass: in which precision, in which layout, and quantised."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils._pytree import tree_map

from ..cell import AUTOCAST, CHANNELS_LAST, QUANTISATIONS, TF32, WEIGHTS, Cell
from ..releases import extras
from ..request import Side
from . import device, failures, original
from .subject import Inputs, Subject, apply
from .values import deep_copy, mapped

# Of a batch of images: batch, channels, height, width.
_IMAGES = 4


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
        if original.has_reset(module):
            raise failures.Unsupported("the factory's reset does not know the quantised copy")
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


def _fresh(value: Any) -> Any:
    """A new tensor of the same kind; random numbers if it is floating-point."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.randn_like(value) if value.is_floating_point() else value.clone()


def arrange(cell: Cell, module: torch.nn.Module) -> None:
    """Give the module's weights the cell's dtype and layout, in place.

    TF32 is a setting of the whole process, so it holds for eager, too. Raises
    `failures.Unsupported` where the device has no TF32.
    """
    if cell.dtype in WEIGHTS:
        module.to(getattr(torch, WEIGHTS[cell.dtype]))
    if cell.layout == CHANNELS_LAST:
        module.to(memory_format=torch.channels_last)
    if cell.dtype == TF32:
        if cell.device == "cpu" or not device.has_tf32():
            raise failures.Unsupported("TF32 is a precision of NVIDIA's GPUs, from Ampere on")
        torch.set_float32_matmul_precision("high")


def arranged(cell: Cell, inputs: Any) -> Any:
    """The inputs in the cell's dtype and layout."""
    dtype = getattr(torch, WEIGHTS[cell.dtype]) if cell.dtype in WEIGHTS else None
    last = cell.layout == CHANNELS_LAST
    if dtype is None and not last:
        return inputs

    def change(value: torch.Tensor) -> torch.Tensor:
        if dtype is not None and value.is_floating_point():
            value = value.to(dtype)
        if last and value.dim() == _IMAGES:
            value = value.contiguous(memory_format=torch.channels_last)
        return value

    return mapped(change, inputs)


def autocast(cell: Cell) -> AbstractContextManager[Any]:
    """The autocast region of the cell's calls; a context without effect where there is none."""
    if cell.dtype not in AUTOCAST:
        return contextlib.nullcontext()
    return torch.autocast(cell.device, getattr(torch, cell.dtype))  # type: ignore[no-any-return]


def quantised(module: torch.nn.Module, dtype: str) -> torch.nn.Module:
    """A copy of the module with the weights of its linear layers quantised.

    ``dtype``: one of `cell.QUANTISATIONS`. Raises `failures.Unsupported` where torchao is missing,
    or changes nothing: the module would be compared with itself.

    torchao would also change settings of the process: Inductor's, and until 0.17 the precision of
    all float32 products, quantised or not. Both stay as they are, so that the cell shows what
    quantising does.
    """
    try:
        from torchao.quantization import (
            Int8DynamicActivationInt8WeightConfig,
            Int8WeightOnlyConfig,
            quantize_,
        )
    except ImportError as error:
        raise failures.Unsupported(_missing(error)) from None
    dynamic, _ = QUANTISATIONS
    kind = Int8DynamicActivationInt8WeightConfig if dtype == dynamic else Int8WeightOnlyConfig
    made = deep_copy(module)
    before = list(made.parameters())
    quantize_(made, kind(set_inductor_config=False))
    after = list(made.parameters())
    if len(before) == len(after) and all(map(operator.is_, before, after)):
        raise failures.Unsupported(_nothing(module))
    return made


def _nothing(module: torch.nn.Module) -> str:
    """Why torchao has changed no weights."""
    linear = [part for part in module.modules() if isinstance(part, torch.nn.Linear)]
    floating = [part for part in linear if part.weight.is_floating_point()]
    if floating:
        return f"torchao quantised nothing: it takes none of the module's {len(floating)} nn.Linear"
    return "torchao quantised nothing: the module has no nn.Linear with floating-point weights"


def _missing(error: ImportError) -> str:
    """Why there is no torchao."""
    release = str(torch.__version__).partition("+")[0]
    wanted = extras.of(release).get("torchao")
    if wanted is None:
        return f"torchao's own table of compatible versions has none for torch {release}"
    return f"torchao is missing here ({error}); pip install --no-deps torchao=={wanted} adds it"
