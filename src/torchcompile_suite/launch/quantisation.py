"""Quantised copies of modules: int8 weights for linear layers, by torchao."""

from __future__ import annotations

import copy
import operator

import torch

from ..cell import QUANTISATIONS
from ..releases import extras
from . import failures


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
    made = copy.deepcopy(module)
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
