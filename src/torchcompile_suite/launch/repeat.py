"""Whether a module fails by itself when it is called again and again."""

from __future__ import annotations

import time

import torch

from .. import workloads
from ..cell import Cell
from ..measurement import Outcome, Status
from . import failures, inputs, resets
from .build import build

# Calls and seconds for the search.
MOST_CALLS = 100_000
LIMIT_S = 30.0
# The stages in which the module is called again and again.
_STAGES = ("eager", "warm-up", "memory", "turns", "eager calls", "calls")


def explained(cell: Cell, outcome: Outcome, stage: str) -> Outcome:
    """The outcome of a launch that failed in that stage; of the module if eager fails as well.

    Builds the cell once more and calls it in eager until it fails. Never raises.
    """
    if outcome.status is not Status.CRASH or stage not in _STAGES:
        return outcome
    if not workloads.get(cell.workload).foreign:
        return outcome
    try:
        reason = _failing_call(cell)
    except Exception:
        return outcome
    return Outcome(Status.CRASH, reason) if reason else outcome


def _failing_call(cell: Cell) -> str:
    subject = build(cell)
    before = inputs.copied(subject.inputs)
    deadline = time.perf_counter() + LIMIT_S
    with torch.set_grad_enabled(cell.phase == "training"):
        for number in range(1, MOST_CALLS + 1):
            try:
                subject.eager()
            except Exception as error:
                if number == 1:
                    return ""
                where = failures.where(error)
                reason = failures.one_line(f"{type(error).__name__}: {error}")
                return (
                    f"the module itself fails at call {number}, in eager, too: {reason}"
                    f"{f' ({where})' if where else ''}; give make() inputs or a state that can be "
                    "called as often as you like, or let it return (model, inputs, reset): reset() "
                    "is called after each call"
                )
            if time.perf_counter() > deadline:
                break
            subject.inputs = inputs.copied(before)
            resets.reset(subject.module)
    return ""
