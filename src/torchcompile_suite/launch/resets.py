"""Functions of the user's that give a module a fresh state, for modules that need one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch


class _Reset(NamedTuple):
    module: torch.nn.Module  # alive, so that its identity stays its own
    function: Callable[[], object]


_RESETS: dict[int, _Reset] = {}


def keep(module: torch.nn.Module, function: Callable[[], object]) -> None:
    """The function resets the state of this module."""
    _RESETS[id(module)] = _Reset(module, function)


def reset(module: torch.nn.Module) -> bool:
    """Reset the module's state. False if there is no function for that."""
    kept = _RESETS.get(id(module))
    if kept is not None:
        kept.function()
    return kept is not None
