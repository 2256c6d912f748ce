"""Which share of a model's operators is in captured graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from ..precision import autocast
from ..subject import Subject, apply
from . import versions

_MARK = "in a captured graph"


def captured(subject: Subject) -> float | None:
    """The share of operator calls of one forward call that are in graphs, from 0 to 1.

    Captures once more: a backend without code generation marks its graphs for the profiler. None
    for a model without operators. Operators that an operator calls do not count.
    """
    versions.reset()
    forward = torch.compile(subject.module, backend=_marking, dynamic=subject.dynamic)
    with autocast(subject.cell):
        apply(forward, subject.inputs)
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            apply(forward, subject.inputs)
    inside = outside = 0
    for event in profiler.events():
        if "::" not in event.name:
            continue
        around = _around(event)
        if not any("::" in name for name in around):
            inside += _MARK in around
            outside += _MARK not in around
    return inside / (inside + outside) if inside + outside else None


def _around(event: Any) -> list[str]:
    """The names of the events that the event is in."""
    names = []
    while (event := event.cpu_parent) is not None:
        names.append(event.name)
    return names


def _marking(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        with record_function(_MARK):
            return graph(*inputs)

    return run
