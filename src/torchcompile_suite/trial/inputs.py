"""What a factory returns beside its module, as the inputs of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..workloads import WorkloadError

if TYPE_CHECKING:
    import torch

    from ..workloads import Inputs

FORMS = (
    "return (model, inputs): a tuple by position, a dict by name, any other object as the one "
    "argument; or (model, inputs by position, a dict of inputs by name); and behind them, if each "
    "call needs a fresh state, a function without arguments that resets it"
)


class Returned(NamedTuple):
    """What a factory returned: a module, its inputs or None, and what resets its state or None."""

    module: Any
    inputs: Any = None
    reset: Callable[[], object] | None = None


def divided(returned: Any) -> Returned:
    """The parts of what a factory returned.

    Inputs by position and by name together are a pair: a tuple and a dict. A function behind the
    inputs resets the state.
    """
    if not isinstance(returned, (tuple, list)) or len(returned) < 2:
        return Returned(returned)
    module, inputs, *more = returned
    if more and isinstance(more[0], Mapping):
        inputs = _Both(inputs, more.pop(0))
    reset = more.pop(0) if more and callable(more[0]) else None
    return Returned(returned) if more else Returned(module, inputs, reset)


class _Both:
    """Inputs by position and by name."""

    def __init__(self, by_position: Any, by_name: Mapping[str, Any]) -> None:
        several = isinstance(by_position, (tuple, list))
        self.by_position = tuple(by_position) if several else (by_position,)
        self.by_name = dict(by_name)


def arranged(module: torch.nn.Module, inputs: Any) -> Inputs | None:
    """The inputs as a tuple by position or a dict by name, as the module's forward takes them.

    A list, a mapping or a named tuple is the one argument where the forward takes it only so. None
    if there are no inputs, and the forward needs some. Raises WorkloadError for inputs that the
    forward cannot take.
    """
    import torch

    signature = _signature(module)
    if isinstance(inputs, _Both):
        return _by_name(signature, inputs)
    if inputs is None:
        return () if signature is not None and _takes(signature, ()) else None
    if isinstance(inputs, torch.Tensor) or not isinstance(inputs, (Mapping, Sequence)):
        return (inputs,)
    if isinstance(inputs, str | bytes):
        return (inputs,)
    spread: Inputs
    if isinstance(inputs, Mapping):
        if not all(isinstance(name, str) for name in inputs):
            return (inputs,)
        spread = dict(inputs)
    else:
        spread = tuple(inputs)
    one_argument = signature is not None and _takes(signature, (inputs,))
    if signature is None or _takes(signature, spread) or not one_argument:
        return spread
    return (inputs,)


def _signature(module: torch.nn.Module) -> inspect.Signature | None:
    """The signature of the module's forward; None if it is not known."""
    try:
        return inspect.signature(module.forward)
    except (TypeError, ValueError, RuntimeError):
        return None


def _takes(signature: inspect.Signature, inputs: Inputs) -> bool:
    try:
        if isinstance(inputs, dict):
            signature.bind(**inputs)
        else:
            signature.bind(*inputs)
    except TypeError:
        return False
    return True


def _by_name(signature: inspect.Signature | None, both: _Both) -> Inputs:
    """All inputs by name."""
    if signature is None:
        raise WorkloadError("inputs by position and by name need a forward with a signature")
    try:
        bound = signature.bind(*both.by_position, **both.by_name)
    except TypeError as error:
        raise WorkloadError(f"forward does not take these inputs: {error}; {FORMS}") from None
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named |= value
        elif kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise WorkloadError(
                f"forward takes {name} by position only; return all inputs by position, or give "
                "the module a forward that takes them by name"
            )
        else:
            named[name] = value
    return named


def batch_size(inputs: Inputs) -> int:
    """The first size of the first tensor; of a list of images, which torchvision's detection models
    take, the number of images: an image has three sizes, of which the first is its 1 or 3 channels.
    """
    from ..launch.inputs import tensors as tensors_of

    first = next(iter(inputs.values() if isinstance(inputs, dict) else inputs), None)
    if isinstance(first, (tuple, list)):
        parts = tensors_of(first)
        if parts and all(part.dim() == 3 and part.size(0) in (1, 3) for part in parts):
            return len(parts)
    tensor = next((tensor for tensor in tensors_of(inputs) if tensor.dim()), None)
    return 1 if tensor is None else max(1, tensor.size(0))


def check(module: torch.nn.Module, inputs: Inputs) -> None:
    """Raise WorkloadError if the module or its inputs have nothing to compute with."""
    from ..launch.values import tensors as tensors_of

    tensors = tensors_of(inputs)
    weights = [*module.parameters(), *module.buffers()]
    if any(tensor.is_meta for tensor in (*tensors, *weights)):
        raise WorkloadError(
            "weights or inputs are on the device meta, which has no numbers; make them real in the "
            'factory: model.to_empty(device="cpu") and an initialisation'
        )
    if tensors and not any(tensor.numel() for tensor in tensors):
        raise WorkloadError(
            "the inputs have no elements, so there is nothing to time; give inputs with at least "
            "one row"
        )
