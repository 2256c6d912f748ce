"""The calls of a cell: what a launch times, and what the outputs are compared with.

The protocol in `measure` knows only `Subject`. The subclasses say what a call is: a forward pass, a
training step, or a pass over a stream of shapes (`forward`, `training`, `stream`). `compiler` says
what is compiled, and how: the values of `Cell.way`.

- ``whole``: the module, by `torch.compile`.
- ``freezing``: the same, with the weights as constants of the generated code.
- ``regional``: only the block that the module repeats. The rest runs in eager.
- ``nested-region``: the whole module. The block that it repeats is a region that Inductor compiles
  once (`torch.compiler.nested_compile_region`).
- ``as-given``: what the user's code compiles, with its own options.

What a release lacks is found by looking for it, and is `failures.Unsupported` with a reason.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, TypeAlias

import torch

from ..cell import Cell
from ..modes import EAGER
from ..request import Side
from . import failures, original, state, values
from .state import State

SEED = 20240724
# The contexts of an inference, from the usual one to the one in which any model runs.
CONTEXTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "inference": torch.inference_mode,
    "no-grad": torch.no_grad,
    "grad": contextlib.nullcontext,
}

# Keyword arguments of torch.compile.
Options: TypeAlias = Mapping[str, Any]
Call = Callable[[], Any]
Inputs = tuple[Any, ...] | dict[str, Any]


class Subject:
    """The calls of a cell. `baseline`, `eager` and the compiled call take no arguments.

    - ``module``, ``inputs``: one forward call of the module that is compiled.
    - ``in_a_row``: a check makes its calls one after the other, so that later ones see the state
      that earlier ones leave. Else it puts the state back before each.
    - ``fresh_inputs``: each call finds the inputs as they were given, so they are no state.
    - ``dynamic``: the argument of torch.compile.
    - ``gradients``: the name of the context of an inference (`CONTEXTS`).
    - ``module_calls``: calls of the module in one call. ``shapes``: the different ones among them.

    The baseline and the compiled call enter the same number of Python frames, so that pairs compare
    like with like; `ForwardAgainstFloat32` and `Quantised` have one less in the baseline.
    """

    dynamic: bool | None = None
    in_a_row = True
    fresh_inputs = False
    gradients = "inference"
    module_calls = 1
    shapes = 1

    def __init__(self, cell: Cell, module: torch.nn.Module, inputs: Inputs) -> None:
        """Take a module and inputs that are on the cell's device."""
        self.cell = cell
        self.module = module
        self.inputs = inputs
        self._kept: State | None = None

    def call(self, forward: Any) -> Any:
        """One call, with the module or the compiled module as ``forward``."""
        raise NotImplementedError

    def baseline(self) -> Any:
        """The call that the compiled call is paired with."""
        return self.call(self.module)

    def eager(self) -> Any:
        """The same work as the compiled call, in eager."""
        return self.call(self.module)

    def compile(self) -> tuple[Call, Any]:
        """Set torch.compile up. Returns the call in the mode, which compiles when it first runs,
        and the compiled module.
        """
        forward = compiler(self.cell, self.dynamic)(self.module)
        return (lambda: self.call(forward)), forward

    def context(self) -> AbstractContextManager[Any]:
        """The context in which everything is called."""
        if self.cell.phase == "training" or self.cell.protocol in ("grad-on", "train-mode"):
            return contextlib.nullcontext()
        return CONTEXTS[self.gradients]()

    @contextlib.contextmanager
    def alone(self, side: Side) -> Iterator[bool]:  # noqa: ARG002 (a subclass uses it)
        """A context that tells whether the device's memory is that side's alone. What both sides
        use counts for both.
        """
        yield True

    def given(self) -> Any:
        """The inputs of all calls."""
        return self.inputs

    def reset(self, seed: int = SEED + 1) -> None:
        """Restore the state that calls to be compared must start from, and seed the generators.

        It is the state at the first reset. It is copied only then: a user's script has no copies.
        """
        if self._kept is None:
            self._kept = self._state()
        self._kept.restore()
        state.seed(seed)

    def changes(self) -> dict[str, torch.Tensor]:
        """The state that differs from that of `reset`, by its place in the module."""
        return self._kept.changes() if self._kept else {}

    def changed(self, changes: dict[str, torch.Tensor], name: str) -> torch.Tensor | None:
        """The tensor at that place of the state after a call that has made ``changes``."""
        return self._kept.completed(changes, name) if self._kept else None

    def drawn(self) -> list[bytes]:
        """The state of all generators: first of those that all modules share."""
        return state.drawn(self.cell.device) + (self._kept.drawn() if self._kept else [])

    def touched(self) -> bool:
        """Whether the weights have changed since the first `reset`, which does not restore them."""
        return self._kept is not None and self._kept.touched()

    def keep_weights(self) -> None:
        """Let `reset` restore the weights, too, from now on."""
        self._kept = self._state(parameters=True)

    def _state(self, parameters: bool = False) -> State:
        return State(self.module, () if self.fresh_inputs else self.given(), parameters)

    def other_weights(self) -> bool:
        """Change the weights that `reset` restores. False if this is not done, or the limit
        is reached."""
        return False

    def outputs(self, result: Any) -> Any:
        """The part of a call's result that is compared."""
        return result

    def apart(self, result: Any) -> list[Any]:
        """The same, and all else that a check compares; each is compared apart."""
        return [self.outputs(result)]

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """What `apart` returns, of a call of a copy of the module in float64 with such inputs."""
        return [apply(module, given)]


def apply(forward: Callable[..., Any], inputs: Inputs) -> Any:
    """Call ``forward`` with the inputs: a tuple by position, a dict by name."""
    return forward(**inputs) if isinstance(inputs, dict) else forward(*inputs)


def compiler(cell: Cell, dynamic: bool | None = None) -> Callable[[torch.nn.Module], Any]:
    """torch.compile with the cell's mode, backend and way; the identity for eager.

    What it returns is called like the module, which stays as it is. The first call compiles. Raises
    `failures.Unsupported` if the way does not exist for this module, in this release, or in this
    context.
    """
    if cell.mode == EAGER:
        return lambda module: module
    options: dict[str, Any] = {"backend": cell.backend, "dynamic": dynamic}
    if cell.backend == "inductor":
        options["mode"] = cell.mode
    return lambda module: _WAYS[cell.way](module, options)


def weights(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """The module's parameters and buffers."""
    return chain(module.parameters(), module.buffers())


def repeated_blocks(module: torch.nn.Module) -> list[torch.nn.Module]:
    """The block that the module repeats: equal siblings in a ModuleList or a Sequential.

    Siblings are equal if they have the same class and weights of the same names, shapes and dtypes.
    A block has weights and modules of its own. If there are several sets of siblings, the set with
    the most numbers in its weights is returned, of equal sets the outermost. Empty if there is
    none.
    """
    sets: list[list[torch.nn.Module]] = []
    for container in module.modules():
        if isinstance(container, torch.nn.ModuleList | torch.nn.Sequential):
            equal: dict[Any, list[torch.nn.Module]] = defaultdict(list)
            # A module that stands in the container twice is one block.
            for block in dict.fromkeys(container.children()):
                if any(True for _ in block.children()) and _numbers(block):
                    equal[_likeness(block)].append(block)
            sets += [blocks for blocks in equal.values() if len(blocks) > 1]
    return max(sets, key=lambda blocks: len(blocks) * _numbers(blocks[0]), default=[])


def _likeness(block: torch.nn.Module) -> Any:
    """Equal for equal blocks."""
    named = chain(block.named_parameters(), block.named_buffers())
    return type(block), tuple((name, weight.shape, weight.dtype) for name, weight in named)


def _numbers(block: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in block.parameters())


def twin(module: torch.nn.Module) -> torch.nn.Module:
    """The same module in other objects, which share its weights and buffers.

    Compiling the blocks of the twin leaves the module as it is: on an accelerator, eager runs in
    the same process, and everywhere the output is compared with that of the module in eager. Raises
    `failures.Unsupported` if the module cannot be copied.
    """
    shared = {id(tensor): tensor for tensor in weights(module)}
    try:
        return values.deep_copy(module, shared)
    except Exception as error:
        reason = failures.said(error)
        raise failures.Unsupported(
            f"the module cannot be copied to compile its blocks apart: {reason}"
        ) from error


def _whole(module: torch.nn.Module, options: Options) -> Any:
    return torch.compile(module, **options)


def _freezing(module: torch.nn.Module, options: Options) -> Any:
    """Constants are folded and weights are packed once, when the code is generated.

    The setting stays for the rest of the process. The first call compiles, and Dynamo asks for the
    setting too, to keep the weights out of the graph's inputs: ``options=`` would reach Inductor
    only, and a patch around `torch.compile` neither of them.
    """
    if options["backend"] != "inductor":
        raise failures.Unsupported(f"backend {options['backend']} does not freeze: Inductor does")
    if torch.is_grad_enabled() or module.training:
        raise failures.Unsupported(
            "freezing makes constants of the weights: it needs eval() and calls without gradients"
        )
    from torch._inductor import config

    config.freezing = True
    return torch.compile(module, **options)


def _regional(module: torch.nn.Module, options: Options) -> Any:
    """One graph serves all blocks, because its guards do not name the module.

    In 2.4 a setting decides on that, which PyTorch's recipe "Reducing torch.compile cold start
    compilation time with regional compilation" tells its users to set. Since 2.5 it is the default.
    """
    whole, blocks = _with_blocks(module)
    # A TorchVersion, which compares with version texts. A nightly counts as its release.
    if torch.__version__ < "2.5.dev0":
        from torch._dynamo import config

        config.inline_inbuilt_nn_modules = True
    for block in blocks:
        block.compile(**options)
    return whole


def of_release(owner: Any, name: str) -> Any:
    """What a module of torch has. Raises `failures.Unsupported` if this release lacks it."""
    if not hasattr(owner, name):
        raise failures.Unsupported(f"torch {torch.__version__} has no {owner.__name__}.{name}")
    return getattr(owner, name)


def _nested_region(module: torch.nn.Module, options: Options) -> Any:
    mark = of_release(torch.compiler, "nested_compile_region")
    whole, blocks = _with_blocks(module)
    # The region is a function, and the same one for all blocks: Dynamo knows it by that.
    block_class = type(blocks[0])
    region = type(block_class.__name__, (block_class,), {"forward": mark(block_class.forward)})
    for block in blocks:
        block.__class__ = region
    return torch.compile(whole, **options)


def _as_given(module: torch.nn.Module, options: Options) -> Any:  # noqa: ARG001 (all have both)
    given = original.as_given(module)
    if given is None:
        raise failures.Unsupported("the module's code compiles nothing")
    given.put(compiled=True)
    return given.module


def _with_blocks(module: torch.nn.Module) -> tuple[torch.nn.Module, list[torch.nn.Module]]:
    """A twin of the module, and the blocks that it repeats."""
    if original.has_reset(module):
        raise failures.Unsupported(
            "the factory's reset does not know the copy whose blocks are compiled"
        )
    if not repeated_blocks(module):
        raise failures.Unsupported(
            f"{type(module).__name__} repeats no block: no ModuleList or Sequential has two equal "
            "modules with modules of their own"
        )
    whole = twin(module)
    return whole, repeated_blocks(whole)


_WAYS: dict[str, Callable[[torch.nn.Module, Options], Any]] = {
    "whole": _whole,
    "freezing": _freezing,
    "regional": _regional,
    "nested-region": _nested_region,
    "as-given": _as_given,
}
