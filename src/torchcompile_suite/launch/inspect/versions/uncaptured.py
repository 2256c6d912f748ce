"""Why Dynamo captured no graph, so that the "compiled" module ran in eager, torch 2.4 to 2.15.

Dynamo says nothing about it: it skips the frame. For example, Inductor does not compile bfloat16 on
a GPU before Ampere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch._dynamo.utils
from torch._dynamo.exc import SkipFrame

from . import reset

_MOST_REASONS = 3


def reasons(call: Callable[[], Any]) -> str:
    """Call once more, and return what Dynamo says while it skips; in one line.

    All captures are dropped before, so nothing can be measured afterwards. Only a call without any
    graph is made twice: to listen from the start would cost time in all others.
    """
    for variable in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"):
        if os.environ.get(variable) == "1":
            return f"{variable}=1 is set"
    reset()
    said: dict[str, None] = {}

    made = SkipFrame.__init__

    def noting(error: SkipFrame, *arguments: Any, **options: Any) -> None:
        said[_first_line(*arguments[:1])] = None
        made(error, *arguments, **options)

    with mock.patch.object(SkipFrame, "__init__", noting):
        call()
    counters = torch._dynamo.utils.counters
    for name in ("graph_break", "unimplemented"):
        said |= dict.fromkeys(map(_first_line, counters[name]))
    return "; ".join(list(filter(None, said))[:_MOST_REASONS]) or "Dynamo does not say why"


def _first_line(text: object = "") -> str:
    return next(iter(str(text).strip().splitlines()), "")
