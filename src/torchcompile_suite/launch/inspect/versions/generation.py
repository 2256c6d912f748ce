"""How a graph goes through AOTAutograd and Inductor without being called, torch 2.4 to 2.15.

`hooks` watches Inductor meanwhile, and `answers` answers for the device.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Sequence
from typing import Any
from unittest import mock

import torch
import torch._dynamo.backends.common
import torch._functorch.config
import torch._guards
import torch._inductor.compile_fx
import torch._inductor.config


def modes(mode: str) -> dict[str, Any]:
    """Inductor's settings for a mode of torch.compile."""
    from torch._inductor import list_mode_options

    return dict(list_mode_options(mode))


def settings() -> contextlib.AbstractContextManager[Any]:
    """A context in which everything is generated anew, in this process.

    Equal graphs must not share their code, and no pool of compile workers is needed.
    """
    stack = contextlib.ExitStack()
    stack.enter_context(
        torch._inductor.config.patch({"fx_graph_cache": False, "compile_threads": 1})
    )
    if hasattr(torch._functorch.config, "enable_autograd_cache"):  # since 2.5
        stack.enter_context(torch._functorch.config.patch({"enable_autograd_cache": False}))
    return stack


def fake_mode() -> Any:
    """The mode of the fake tensors of the graph that Dynamo is compiling."""
    return torch._guards.TracingContext.get().fake_mode


def meta_value(node: Any) -> Any:
    """Dynamo's fake tensor or symbol for an input of its graph; None if it kept none."""
    return node.meta.get("example_value")


def copy_notes(graph: Any, placed: Any) -> None:
    """Give a copy of Dynamo's graph what Dynamo notes beside it: where each input comes from.

    AOTAutograd learns from it which inputs are parameters, whose memory never moves.
    """
    for name in ("_param_name_to_source", "_source_to_user_stacks"):
        if hasattr(graph, name):
            setattr(placed, name, getattr(graph, name))
    for node, copied in zip(graph.graph.nodes, placed.graph.nodes, strict=True):
        if hasattr(node, "_dynamo_source"):
            copied._dynamo_source = node._dynamo_source


def compile_graph(graph: Any, inputs: Sequence[Any], options: dict[str, Any]) -> None:
    """Let AOTAutograd and Inductor work on a graph: forward, and backward if it needs gradients.

    AOTAutograd compiles the backward pass when it is first called. Here nothing is called, so the
    class that keeps it for later is watched.
    """
    owner = next(
        module
        for module in map(_aot_module, ("graph_compile", "jit_compile_runtime_wrappers"))
        if module is not None and hasattr(module, "AutogradLazyBackwardCompileInfo")
    )
    kept: list[Any] = []
    compilers: list[Any] = []
    original = owner.AutogradLazyBackwardCompileInfo
    aot = torch._dynamo.backends.common.AotAutograd
    start = aot.__init__

    def keeping(*arguments: Any, **options: Any) -> Any:
        kept.append(original(*arguments, **options))
        return kept[-1]

    def starting(self: Any, **options: Any) -> None:
        compilers.append(options["bw_compiler"])
        start(self, **options)

    done: list[bool] = []
    inner = torch._inductor.compile_fx.compile_fx_inner

    def compiling(*arguments: Any, **given: Any) -> Any:
        done.append(bool(given.get("is_backward")))
        return inner(*arguments, **given)

    with (
        mock.patch.object(owner, "AutogradLazyBackwardCompileInfo", keeping),
        mock.patch.object(aot, "__init__", starting),
    ):
        torch._inductor.compile_fx.compile_fx(
            graph, inputs, inner_compile=compiling, config_patches=options
        )
    if kept and not any(done):
        later = kept[-1]
        with (
            torch._guards.tracing(later.saved_context),
            torch._guards.compile_context(later.saved_compile_context),
            torch._C._DisableAutocast(),
        ):
            compilers[-1](later.bw_module, later.placeholder_list)


def _aot_module(name: str) -> Any:
    """A module of AOTAutograd; None if the release has none of that name."""
    try:
        return importlib.import_module(f"torch._functorch._aot_autograd.{name}")
    except ModuleNotFoundError:
        return None
