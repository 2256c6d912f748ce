"""Quantised copies of modules: int8 weights for linear layers, by torchao."""

from __future__ import annotations

import copy

import torch

from ..cell import QUANTISATIONS
from ..releases import extras
from . import failures


def quantised(module: torch.nn.Module, dtype: str) -> torch.nn.Module:
    """A copy of the module with the weights of its linear layers quantised.

    ``dtype``: one of `cell.QUANTISATIONS`. Raises `failures.Unsupported` where torchao is missing.

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
    made = copy.deepcopy(module)
    quantize_(made, kind(set_inductor_config=False))
    return made


def _missing(error: ImportError) -> str:
    """Why there is no torchao."""
    release = str(torch.__version__).partition("+")[0]
    wanted = extras.of(release).get("torchao")
    if wanted is None:
        return f"torchao's own table of compatible versions has none for torch {release}"
    return f"torchao is missing here ({error}); pip install --no-deps torchao=={wanted} adds it"
