"""The calls of a cell: what a launch times, and what the outputs are compared with.

The protocol in `measure` knows only `Subject`. The subclasses say what a call is: a forward pass, a
training step, or a pass over a stream of shapes (`forward`, `training`, `stream`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from ..cell import Cell
from ..modes import EAGER
from ..request import Side
from . import state, ways
from .state import State

SEED = 20240724
# The contexts of an inference, from the usual one to the one in which any model runs.
CONTEXTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "inference": torch.inference_mode,
    "no-grad": torch.no_grad,
    "grad": contextlib.nullcontext,
}


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

    def changed(self, changes: dict[str, torch.Tensor], names: Sequence[str]) -> list[Any]:
        """The state at these places after a call that has made ``changes``."""
        return self._kept.completed(changes, names) if self._kept else []

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

    def in_float32(self) -> Any:
        """The outputs of the module before it was quantised."""
        raise NotImplementedError

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """What `apart` returns, of a call of a copy of the module in float64 with such inputs."""
        return [apply(module, given)]


def apply(forward: Callable[..., Any], inputs: Inputs) -> Any:
    """Call ``forward`` with the inputs: a tuple by position, a dict by name."""
    return forward(**inputs) if isinstance(inputs, dict) else forward(*inputs)


def compiler(cell: Cell, dynamic: bool | None = None) -> Callable[[torch.nn.Module], Any]:
    """torch.compile with the cell's mode, backend and way; the identity for eager."""
    if cell.mode == EAGER:
        return lambda module: module
    options: dict[str, Any] = {"backend": cell.backend, "dynamic": dynamic}
    if cell.backend == "inductor":
        options["mode"] = cell.mode
    return lambda module: ways.compiled(cell, module, options)
