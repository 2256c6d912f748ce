"""In which precision a cell's calls are, and in which layout its images lie in memory."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import torch

from ..cell import AUTOCAST, CHANNELS_LAST, TF32, WEIGHTS, Cell
from . import failures
from .inputs import mapped

# Of a batch of images: batch, channels, height, width.
_IMAGES = 4


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
        if cell.device == "cpu" or torch.version.hip or torch.cuda.get_device_capability() < (8, 0):
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
