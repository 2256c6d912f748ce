"""A graph that Dynamo captured on the CPU, with its tensors on the target.

Dynamo runs on the CPU, with real values: so graphs break where they break for a user, also at a
branch on a value. A tensor on the target is a fake tensor: shape, strides, dtype and device, but no
memory. What the model reads of the device is "cpu": a model that looks at it is captured as for a
CPU.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from ..inspect.versions import generation

TARGET = torch.device("cuda", 0)


def place(
    graph: torch.fx.GraphModule, inputs: Sequence[Any]
) -> tuple[torch.fx.GraphModule, list[Any]]:
    """A copy of the graph and its inputs on the target; the graph itself does not change."""
    mode = generation.fake_mode()
    with mode:
        # By identity: a parameter that two layers share stays shared.
        copies = {id(tensor): _tensor(tensor) for tensor in _held(graph)}
    placed = copy.deepcopy(graph, copies)
    generation.copy_notes(graph, placed)
    for node in placed.graph.nodes:
        if any(map(_on_cpu, tree_leaves((node.args, node.kwargs)))):
            node.args = tree_map(_device, node.args)
            node.kwargs = tree_map(_device, node.kwargs)
    placed.recompile()
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    with mode:
        given = [
            _input(generation.meta_value(node), value)
            for node, value in zip(placeholders, inputs, strict=True)
        ]
    return placed, given


def _held(graph: torch.fx.GraphModule) -> Iterator[torch.Tensor]:
    """Parameters, buffers and other tensors that the graph holds."""
    yield from graph.parameters()
    yield from graph.buffers()
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            value = operator.attrgetter(node.target)(graph)
            if isinstance(value, torch.Tensor):
                yield value


def _tensor(value: torch.Tensor, shape: torch.Tensor | None = None) -> torch.Tensor:
    """A tensor of the same kind on the target. Called in the mode of fake tensors.

    ``shape``: a tensor with its sizes, strides and dtype; None for its own.
    """
    like = value if shape is None else shape
    made = torch.empty_strided(like.size(), like.stride(), dtype=like.dtype, device=TARGET)
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(made, value.requires_grad)
    return made.requires_grad_(value.requires_grad)


def _input(symbolic: Any, value: Any) -> Any:
    """An input of the graph on the target. ``symbolic`` is Dynamo's own idea of it, which has
    symbols where a size is dynamic.
    """
    if not isinstance(value, torch.Tensor):
        return value if symbolic is None else symbolic
    return _tensor(value, symbolic if isinstance(symbolic, torch.Tensor) else None)


def _on_cpu(value: Any) -> bool:
    """Whether an argument of an operator names the CPU; as text, it is an autocast region's."""
    if isinstance(value, torch.device):
        return bool(value.type == "cpu")
    return isinstance(value, str) and value == "cpu"


def _device(value: Any) -> Any:
    """The target in place of the CPU, in an argument of an operator."""
    if not _on_cpu(value):
        return value
    return TARGET if isinstance(value, torch.device) else TARGET.type
