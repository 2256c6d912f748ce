"""What a rule returns, how it is registered, and the comparisons that rules share.

A comparison returns True, False, or None if the interval does not decide. "About X" means within
15 % of X, unless the claim gives a range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import matrix
from ...cell import Cell, Generated
from ..statistics import Interval
from .evidence import Evidence, Missing

ABOUT = 0.15


class Finding(NamedTuple):
    """What a rule found.

    ``holds``: whether the claim holds; None if that is open, ``opened`` says why. ``reason``: the
    figures in words. ``ours``: our figure. ``interval``: our figure with its 95 % interval, which
    replaces ``ours``.
    """

    holds: bool | None
    reason: str
    ours: float | None = None
    interval: Interval | None = None
    opened: str = "the interval does not decide"


Rule = Callable[[Evidence], Finding]


class Rules(dict[str, Rule]):
    """The rules of a document by the id of the claim; calling it makes a decorator."""

    def __call__(self, claim: str) -> Callable[[Rule], Rule]:
        """Register the decorated rule for that claim."""

        def register(rule: Rule) -> Rule:
            self[claim] = rule
            return rule

        return register


def within(interval: Interval, low: float, high: float) -> bool | None:
    """Whether a figure lies in a range.

    False if the whole interval lies outside. True if the figure lies in the range and its interval
    leaves the range by at most 15 %.
    """
    if interval.high < low or interval.low > high:
        return False
    near = interval.low >= low * (1 - ABOUT) and interval.high <= high * (1 + ABOUT)
    return True if near and low <= interval.value <= high else None


def about(interval: Interval, figure: float) -> bool | None:
    """Whether our figure lies within 15 % of the document's."""
    return within(interval, figure * (1 - ABOUT), figure * (1 + ABOUT))


def above(interval: Interval, limit: float) -> bool | None:
    """Whether the whole interval lies above a limit; False if all of it lies below."""
    if interval.low > limit:
        return True
    return False if interval.high < limit else None


def all_of(*parts: bool | None) -> bool | None:
    """Whether all parts of a claim hold: False if one does not, else None if one is open."""
    if False in parts:
        return False
    return None if None in parts else True


def any_of(*parts: bool | None) -> bool | None:
    """Whether at least one part holds: True if one does, else None if one is open."""
    if True in parts:
        return True
    return None if None in parts else False


def inference(workload: str, mode: str = "default", batch_size: int = 1) -> Cell:
    """The plain inference cell of a workload."""
    return Cell(workload, batch_size, mode)


def training(workload: str, dtype: str = "float32") -> Cell:
    """The training cell of a workload in mode default, without gradient accumulation."""
    return matrix.TRAINING.cell(workload, "default", dtype, 1)


def skipped(code: Generated) -> str:
    """Why graphs do not run as CUDA graphs, in brackets; empty if all do."""
    return f" ({'; '.join(code.cudagraph_skips)})" if code.cudagraph_skips else ""


def fewer_launches(evidence: Evidence, workload: str, times: float) -> Finding:
    """Whether CUDA graphs cut the launches of a call by about that factor, in generated code.

    Counts have no interval. The launches are those of the host: a CUDA graph is one. The call of a
    library is one, too, but it may launch several kernels, which documents count. So our factor is
    the least that is possible: a larger one in the document stays open, a smaller one does not.
    """
    without = evidence.generated(workload)
    launches, libraries = without.total("launches"), without.total("library_launches")
    code = evidence.generated(workload, "reduce-overhead")
    with_graphs = code.total("launches_with_cuda_graphs")
    if launches is None or not with_graphs:
        raise Missing(f"{workload}: no launches were counted")
    ours = launches / with_graphs
    holds: bool | None = times * (1 - ABOUT) <= ours <= times * (1 + ABOUT)
    if libraries and ours < times * (1 - ABOUT):
        holds = None
    return Finding(
        holds,
        f"{launches} launches of a call, {libraries} of them calls of libraries, become "
        f"{with_graphs} with CUDA graphs{skipped(code)}",
        ours=ours,
        opened="only a GPU tells how many kernels a library launches",
    )
