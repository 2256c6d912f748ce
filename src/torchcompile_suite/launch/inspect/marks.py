"""Marks in code: a reading of the clock before and after each operator and each kernel.

- `in_graphs`: a backend of torch.compile that runs the captured graphs in eager, with marks. The
  operators are those of the model, called with its tensors in its order.
- `writer`: Inductor writes marks into the code that calls its kernels.

So each step is timed where it runs, with the tensors, the buffers and the caches that it has in the
model, and the parts of a call add up. A profiler's events cost several times as much as a mark, and
those of a kernel need a setting that is part of the generated code.

What an accelerator does in a step, the host's clock does not see. There each step is a range of
torch's profiler as well (`ranges`), which knows the kernels that were started in it.
"""

from __future__ import annotations

import contextlib
import operator
import re
import time
import timeit
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import torch

from ...attribution import Direction, Kind, Operator
from .. import values
from . import dynamo

# Pairs of a number and a reading. The even number 2 n begins step n, and 2 n + 1 ends it; `BEGIN`
# begins the generated code of a graph.
stamps: list[tuple[int, int]] = []
BEGIN = -1
# The ranges that are open, by step; None where steps are no ranges.
_open: dict[int, Any] | None = None
_RANGE = "torchcompile_suite step "
# The number that autograd gave to its next node when the last step began.
_made = 0
_OF_WEIGHTS = 2**62
_CALIBRATION = 4000
_GETATTR = re.compile(r"getattr\((.*), '([^']*)'\)")
_LOCAL = re.compile(r"^L\['\w+'\]")
_MODULES = re.compile(r"\._modules\['([^']*)'\]|\[(\d+)\]")


def mark(number: int) -> None:
    """Read the clock. Called by marked code."""
    if _open is not None and number != BEGIN:
        _range(*divmod(number, 2))
    stamps.append((number, time.perf_counter_ns()))


def _range(step: int, end: int) -> None:
    """Open or close the range of a step. A hook that autograd calls twice opens it twice."""
    assert _open is not None
    if (opened := _open.pop(step, None)) is not None:
        opened.__exit__(None, None, None)
    if not end:
        # The range of `record_function` is the user's, to which no kernel belongs by itself.
        _open[step] = torch._C._profiler._RecordFunctionFast(f"{_RANGE}{step}")
        _open[step].__enter__()


@contextlib.contextmanager
def ranges() -> Iterator[None]:
    """A context in which each step is a range of torch's profiler."""
    global _open
    _open = {}
    try:
        yield
    finally:
        _open = None


def step_of(name: str) -> int | None:
    """The step whose range has that name; None if it is another range."""
    return int(name.removeprefix(_RANGE)) if name.startswith(_RANGE) else None


def _mark_input(number: int) -> None:
    """Begin a step of a forward pass. Eager may have made nodes of autograd's graph before it."""
    global _made
    _made = torch._C._autograd._get_sequence_nr()
    mark(number)


def _mark_output(number: int, output: Any) -> None:
    """End a step of a forward pass, and have its backward pass marked as the next step.

    The backward pass of an operator is that of the nodes of autograd's graph that it has made.
    """
    mark(number)
    if torch._C._autograd._get_sequence_nr() != _made:
        for node in _nodes_since(_made, output):
            node.register_prehook(lambda _: mark(number + 1))
            node.register_hook(lambda *_: mark(number + 2))


def _nodes_since(made: int, output: Any) -> list[Any]:
    """The nodes of autograd's graph that an output comes from, and that were made since then.

    ``made``: their sequence number then. Nodes for weights have the highest one of all.
    """
    seen: dict[Any, None] = {}
    left = [getattr(value, "grad_fn", None) for value in values.tensors(output)]
    while left:
        node = left.pop()
        if node is not None and node not in seen and made <= node._sequence_nr() < _OF_WEIGHTS:
            seen[node] = None
            left += [following for following, _ in node.next_functions]
    return list(seen)


def cost_s() -> float:
    """Seconds that a mark takes: the median of a few rounds, without garbage collections."""
    rounds_s = timeit.repeat(
        "mark(0)", stamps.clear, repeat=5, number=_CALIBRATION, globals={"mark": mark}
    )
    stamps.clear()
    return median(rounds_s) / _CALIBRATION


class Marked(NamedTuple):
    """What two marks enclose. ``graph``: number of the code that has them.

    The rest is as in `attribution.Step`.
    """

    name: str
    kind: Kind
    operators: list[Operator]
    graph: int
    direction: Direction = "forward"
    weights: bool = False


def described(node: Any, name: str = "") -> Operator:
    """A node of a graph as an operator of the model. ``name``: of the node that it comes from."""
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = modules[-1] if modules else ("", "")
    called = kind if node.op == "call_module" else node.target
    return Operator(
        name or node.name,
        getattr(called, "__name__", "") or str(called),
        _path(str(path)),
        getattr(kind, "__name__", "") or str(kind).rpartition(".")[2],
        dynamo.innermost_line(node.meta.get("stack_trace") or ""),
    )


def _path(text: str) -> str:
    """``layer1.0.conv1`` of Dynamo's ``L['self'].layer1[0].conv1`` in all of its spellings."""
    while found := _GETATTR.search(text):
        text = text.replace(found[0], f"{found[1]}.{found[2]}")
    text = _MODULES.sub(lambda found: f".{found[1] or found[2]}", text)
    return _LOCAL.sub("", text).lstrip(".")


def _is_free(node: Any) -> bool:
    """Whether the node only takes a part of a tuple, or sets a mode; a tensor's index computes."""
    if node.target is operator.getitem:
        of = node.args[0]
        return not isinstance(getattr(of, "meta", {}).get("example_value"), torch.Tensor)
    return node.target is torch._C._set_grad_enabled


def in_graphs(found: list[Marked]) -> Callable[..., Any]:
    """A backend of torch.compile that adds the operators of each graph to ``found``.

    In a training step each of them is followed by its backward pass.
    """
    graphs = 0

    def backend(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
        nonlocal graphs
        training = torch.is_grad_enabled()
        for node in list(graph.graph.nodes):
            if not node.op.startswith("call_") or _is_free(node):
                continue
            number = 2 * len(found)
            one = described(node)
            found.append(Marked(one.called, "operator", [one], graphs))
            if training:
                found.append(Marked(one.called, "operator", [one], graphs, "backward"))
            with graph.graph.inserting_before(node):
                graph.graph.call_function(_mark_input if training else mark, (number,))
            with graph.graph.inserting_after(node):
                if training:
                    graph.graph.call_function(_mark_output, (number + 1, node))
                else:
                    graph.graph.call_function(mark, (number + 1,))
        graphs += 1
        graph.recompile()
        return graph.forward  # type: ignore[no-any-return]

    return backend
