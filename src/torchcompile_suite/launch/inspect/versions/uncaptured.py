"""Why Dynamo captured no graph, so that the "compiled" module ran in eager, torch 2.4 to 2.15.

Dynamo says nothing about it: it skips the frame. For example, Inductor does not compile bfloat16 on
a GPU before Ampere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from unittest import mock

from torch._dynamo.exc import SkipFrame

from . import graph_breaks, reset
from .reasons import GivenUp, one_line

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
        said[one_line(str(*arguments[:1]))] = None
        made(error, *arguments, **options)

    given_up = GivenUp()
    with mock.patch.object(SkipFrame, "__init__", noting):
        call()
    for each in (*graph_breaks(), *given_up.frames()):
        said[f"{each.reason} ({each.where})" if each.where else each.reason] = None
    return "; ".join(list(filter(None, said))[:_MOST_REASONS]) or "Dynamo names no reason"
