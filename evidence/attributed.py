"""Models to attribute, and faults planted in Inductor. A file of workloads for the suite.

The variable `FAULT` names a fault; without it there is none. The file that `NOTE` names gets what
the fault has hit: the names of kernels, of a library's function or of an operator, a line each.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchcompile_suite.workloads import workload

FAULT = "TORCHCOMPILE_SUITE_TEST_FAULT"
NOTE = "TORCHCOMPILE_SUITE_TEST_NOTE"
MODELS = ("conv_net", "pointwise_net", "attention_net", "mixer_net")
WAIT_S = 0.002


@workload("conv_net", family="tests", also=("training",))
def conv_net(batch_size: int) -> Any:
    """Two convolutions, batch norm, ReLU and a linear layer."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 32, 3)
            self.bn = torch.nn.BatchNorm2d(32)
            self.deep = torch.nn.Conv2d(32, 128, 3, stride=4)
            self.head = torch.nn.Linear(128, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.bn(self.conv(x)))
            return self.head(self.deep(x).mean((2, 3)))

    return Net(), (torch.randn(batch_size, 3, 96, 96),)


@workload("pointwise_net", family="tests")
def pointwise_net(batch_size: int) -> Any:
    """Two linear layers with pointwise operators."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(256, 256)
            self.second = torch.nn.Linear(256, 256)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.nn.functional.gelu(self.first(x))
            x = torch.softmax(self.second(x), dim=-1)
            return torch.sin(x) * torch.cos(x) + x

    return Net(), (torch.randn(512 * batch_size, 256),)


@workload("attention_net", family="tests")
def attention_net(batch_size: int) -> Any:
    """A block with attention spelled out."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(128)
            self.qkv = torch.nn.Linear(128, 384)
            self.out = torch.nn.Linear(128, 128)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
            weights = torch.softmax(torch.tanh(q @ k.transpose(-1, -2)) * 4.0, dim=-1)
            return x + torch.nn.functional.gelu(self.out(weights @ v))

    return Net(), (torch.randn(4 * batch_size, 256, 128),)


@workload("mixer_net", family="tests")
def mixer_net(batch_size: int) -> Any:
    """Blocks that mix tokens and channels."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(192) for _ in range(3))
            self.tokens = torch.nn.ModuleList(torch.nn.Linear(196, 196) for _ in range(3))
            self.head = torch.nn.Linear(192, 192)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for norm, tokens in zip(self.norms, self.tokens, strict=True):
                mixed = tokens(norm(x).transpose(1, 2)).transpose(1, 2)
                x = x + torch.nn.functional.gelu(mixed)
            return torch.sigmoid(self.head(x))

    return Net(), (torch.randn(2 * batch_size, 196, 192),)


def note(name: str) -> None:
    """The fault has hit something of that name."""
    if path := os.environ.get(NOTE):
        with Path(path).open("a") as file:
            file.write(f"{name}\n")


def wait() -> None:
    """Work for `WAIT_S`."""
    end_s = time.perf_counter() + WAIT_S
    while time.perf_counter() < end_s:
        pass


def _largest(nodes: list[Any]) -> Any:
    """The generated kernel that computes most numbers."""
    import math

    def numbers(node: Any) -> int:
        _, group = node.group
        return len(node.get_nodes()) * math.prod(int(size) for part in group for size in part)

    generated = [node for node in nodes if not node.is_extern() and hasattr(node, "group")]
    return max(generated, key=numbers)


def _in_largest(**settings: Any) -> None:
    """Generate the largest kernel with these settings of ``torch._inductor.config``."""
    from torch._inductor import config
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.scheduler import Scheduler

    chosen: list[Any] = []
    set_up, generate, define = (
        Scheduler.__init__,
        CppScheduling.codegen_node,
        CppScheduling.define_kernel,
    )

    def choose(self: Any, *arguments: Any) -> None:
        set_up(self, *arguments)
        chosen[:] = [_largest(self.nodes)]

    def with_settings(self: Any, node: Any) -> Any:
        with config.patch(settings) if node in chosen else contextlib.nullcontext():
            return generate(self, node)

    def named(self: Any, source: str, nodes: Any, *rest: Any) -> str:
        name: str = define(self, source, nodes, *rest)
        if {part for node in chosen for part in node.get_nodes()} & set(nodes):
            note(name)
        return name

    Scheduler.__init__ = choose
    CppScheduling.codegen_node = with_settings
    CppScheduling.define_kernel = named


def _no_fusion() -> None:
    """Each operator writes its result to memory, and no two of them are fused."""
    from torch._inductor import ir
    from torch._inductor.scheduler import Scheduler

    create = ir.Pointwise.create.__func__

    def realized(cls: Any, *arguments: Any, **options: Any) -> Any:
        made = create(cls, *arguments, **options)
        made.realize()
        return made

    ir.Pointwise.create = classmethod(realized)
    Scheduler.can_fuse = lambda *_arguments, **_options: False


def _slow_operator() -> None:
    """ReLU and GELU compute forty times as much."""
    import torch
    from torch._inductor import lowering

    aten = torch.ops.aten
    tanh = lowering.lowerings[aten.tanh.default]

    def slow(usual: Callable[..., Any], name: str, value: Any, *rest: Any, **options: Any) -> Any:
        note(name)
        made = usual(value, *rest, **options)
        for _ in range(40):
            made = tanh(made)
        return made

    # What gelu is made of.
    for name, overload in (("relu", aten.relu.default), ("gelu", aten.erf.default)):
        usual = lowering.lowerings[overload]
        lowering.lowerings[overload] = functools.partial(slow, usual, name)


def _slow_library() -> None:
    """Convolutions and products with weights are computed ten times."""
    from torch._inductor.select_algorithm import extern_kernels

    def slowed(name: str) -> None:
        fast = getattr(extern_kernels, name)

        def slow(*arguments: Any, **options: Any) -> Any:
            for _ in range(9):
                fast(*arguments, **options)
            return fast(*arguments, **options)

        setattr(extern_kernels, name, slow)
        note(name)

    slowed("convolution")
    slowed("addmm")


def _copied(convolution: int, addmm: int) -> None:
    """Copy an argument of each convolution and product before it into the opposite layout.

    By its place: of the input or of the weights.
    """
    import torch
    from torch._inductor import lowering
    from torch._inductor.ir import ExternKernel, get_stride_order

    def copying(usual: Callable[..., Any], at: int, *arguments: Any, **options: Any) -> Any:
        given = list(arguments)
        value = ExternKernel.realize_input(given[at])
        last = len(value.get_size()) - 1
        opposite = [last - rank for rank in get_stride_order(value.get_stride())]
        given[at] = ExternKernel.require_stride_order(value, opposite)
        return usual(*given, **options)

    for name, at in (("convolution", convolution), ("addmm", addmm)):
        overload = getattr(torch.ops.aten, name).default
        usual = lowering.lowerings[overload]
        lowering.lowerings[overload] = functools.partial(copying, usual, at)
        note(name)


def _dear_guards() -> None:
    """Each check of the guards takes 2 ms more."""
    from torch._dynamo.guards import CheckFunctionManager

    set_up = CheckFunctionManager.__init__

    def with_one_more(self: Any, *arguments: Any, **options: Any) -> None:
        set_up(self, *arguments, **options)

        def check(*_: Any) -> bool:
            wait()
            return True

        self.guard_manager.root.add_lambda_guard(check, ["check()"], None)

    CheckFunctionManager.__init__ = with_one_more


def _dear_buffers() -> None:
    """Beside each buffer of the generated code, a large one is filled."""
    from torch._inductor.codegen import wrapper

    writer = getattr(wrapper, "PythonWrapperCodegen", None) or wrapper.WrapperCodeGen
    make = writer.make_allocation

    def dear(*arguments: Any, **options: Any) -> str:
        return f"{make(*arguments, **options)}; torch.zeros(1 << 22)"

    writer.make_allocation = dear


def _slow_entry() -> None:
    """A compiled module waits before each call."""
    import torch

    compiled = torch.nn.Module.__call__

    def slow(self: Any, *arguments: Any, **options: Any) -> Any:
        if type(self).__name__ == "OptimizedModule":
            wait()
        return compiled(self, *arguments, **options)

    torch.nn.Module.__call__ = slow


FAULTS: dict[str, Callable[[], None]] = {
    # The largest kernel is not vectorised; it is not parallel.
    "scalar loop": functools.partial(_in_largest, **{"cpp.simdlen": 1}),
    "one thread": functools.partial(_in_largest, **{"cpp.threads": 1}),
    "no fusion": _no_fusion,
    "slow operator": _slow_operator,
    "slow library": _slow_library,
    "copied input": functools.partial(_copied, convolution=0, addmm=1),
    "copied weights": functools.partial(_copied, convolution=1, addmm=2),
    "dear guards": _dear_guards,
    "dear buffers": _dear_buffers,
    "slow entry": _slow_entry,
}
if fault := os.environ.get(FAULT):
    FAULTS[fault]()
