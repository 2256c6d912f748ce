"""Builds the model of a target with torch, and registers it as a workload.

What a factory returns beside its module becomes the inputs of a call.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import operator
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..launch import caches
from ..workloads import WorkloadError, get, give_stream, library, workload
from .target import Shape, Target, decides_itself, load, shapes, without_arguments

if TYPE_CHECKING:
    import torch

    from ..workloads import Built, Inputs

FAMILY = "target"
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


class Model(NamedTuple):
    """A module, the inputs of one call, and whether another batch size can be asked for.

    ``notes``: what was changed about the model, one line each.
    """

    module: torch.nn.Module
    inputs: Inputs
    scales: bool
    notes: list[str]


def build(target: Target, batch_size: int) -> Model:
    """Build the target. Raises WorkloadError, or any exception of the user's code.

    ``batch_size``: 1 also stands for that of the model's own inputs. Another one than the model can
    have is a WorkloadError: its figures would stand beside a batch size that was not measured.
    """
    with caches.left_to_the_user() as changed:
        returned, scales = _returned(target, batch_size)
    notes = [
        f"the model's code sets {name}: the suite's own folder is used instead, so that a cold "
        "start is cold"
        for name in changed
    ]
    model = _model(target, returned, batch_size, scales, notes)
    if not model.scales and batch_size not in (1, own := batch_size_of(model.inputs)):
        raise WorkloadError(decides_itself(target.name, own))
    return model


def _returned(target: Target, batch_size: int) -> tuple[Returned, bool]:
    """Module and inputs as the user's code makes them; and whether it took the batch size."""
    if target.kind == "pickle":
        return Returned(*pickle.loads(Path(target.where).read_bytes())), False
    if target.kind == "timm":
        # Given shapes replace timm's inputs: then they decide whether the batch size can change.
        return Returned(*_timm(target.where, batch_size)), not target.inputs
    if target.kind == "hf":
        from ..workloads.hugging_face import of_folder

        module, given = of_folder(target.where, None if target.inputs else batch_size)
        if not given and not target.inputs:
            raise WorkloadError(f"no inputs are known for {type(module).__name__}: give --input")
        return Returned(module, given), not target.inputs
    if target.kind == "workload":
        return Returned(*get(target.where).build(batch_size)), True
    from ..launch import state
    from ..launch.subject import SEED

    attribute = _attribute(target)
    # Once more: the user's code, which is imported now, may have drawn numbers, or imported NumPy.
    # Eager and the mode are built in two processes and must be the same.
    state.seed(SEED)
    returned, scales = _call(attribute, target, batch_size)
    return divided(returned), scales


def register(target: Target) -> None:
    """Register the target as a workload with its name; a workload gets its stream."""

    def make(batch_size: int) -> Built:
        model = build(target, batch_size)
        return model.module, model.inputs

    def stream(batch_size: int) -> list[Inputs]:
        # The sizes are named for the first one; for a larger batch size, all are larger by as much.
        more = batch_size - target.stream[0]
        return [make(size + more)[1] for size in target.stream]

    if target.kind == "workload":
        give_stream(target.where, stream)
        return
    workload(
        target.name,
        family=FAMILY,
        imports=target.libraries,
        foreign=True,
        stream=stream if target.stream else None,
    )(make)


def _model(
    target: Target, returned: Returned, batch_size: int, scales: bool, notes: list[str]
) -> Model:
    """Check the module, take out what is compiled already, and complete its inputs.

    Shapes of the command line replace the inputs of the factory. ``scales``: the factory took the
    batch size.
    """
    import torch

    from ..launch.original import keep_reset, original

    module, given, reset = returned
    if not isinstance(module, torch.nn.Module):
        raise WorkloadError(
            f"{target.factory} must return a torch.nn.Module, with or without its example inputs; "
            f"it returns {type(module).__name__}; {FORMS}"
            if target.kind != "pickle"
            else f"compare measures a torch.nn.Module, and not a {type(module).__name__}"
        )
    module, note = original(module)
    if reset is not None:
        keep_reset(module, reset)
    if asked := shapes(target.inputs):
        given = _random_inputs(asked, batch_size)
        scales = scales or any(shape.scales for shape in asked)
    arranged = arranged_inputs(module, given)
    if arranged is None:
        raise WorkloadError(
            f"{target.factory} returns a module alone; give its inputs: --input "
            f"8x3x224x224:float32, or {FORMS}"
            if target.kind != "pickle"
            else "compare needs the inputs of one call: compare(module, inputs)"
        )
    check(module, arranged)
    _initialise(module, arranged)
    return Model(module, arranged, scales, [*notes, *filter(None, [note])])


def _initialise(module: torch.nn.Module, arranged: Inputs) -> None:
    """Call a lazy module once, so that its weights have their sizes."""
    import torch
    from torch.nn.parameter import is_lazy

    from ..launch.subject import apply

    def lazy() -> bool:
        return any(map(is_lazy, (*module.parameters(), *module.buffers())))

    if lazy():
        training = module.training
        # A call in training mode may want targets, and moves the statistics of normalisations.
        module.eval()
        with torch.no_grad():
            apply(module, arranged)
        module.train(training)
        if training and lazy():  # parts that only training uses
            with torch.no_grad(), contextlib.suppress(Exception):
                apply(module, arranged)


def _random_inputs(given: list[Shape], batch_size: int) -> Inputs:
    tensors = [_random(shape, batch_size) for shape in given]
    if given[0].name:
        return dict(zip((shape.name for shape in given), tensors, strict=True))
    return tuple(tensors)


def _random(shape: Shape, batch_size: int) -> torch.Tensor:
    import torch

    sizes = [batch_size if size is None else size for size in shape.sizes]
    dtype = getattr(torch, shape.dtype)
    if dtype is torch.bool:
        return torch.rand(sizes) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(sizes, dtype=torch.complex64 if dtype.is_complex else None).to(dtype)
    return torch.randint(0, shape.below, sizes, dtype=dtype)


def _timm(name: str, batch_size: int) -> tuple[Any, Any]:
    from ..workloads.timm_models import build as build_timm

    timm = library("timm")
    try:
        return build_timm(name, batch_size)
    except RuntimeError as error:
        if "Unknown model" not in str(error):
            raise
        similar = difflib.get_close_matches(name, timm.list_models(), 3)
        hint = f"; did you mean {', '.join(similar)}?" if similar else ""
        raise WorkloadError(
            f"{name!r} is neither a workload of the suite nor a model of timm {timm.__version__}"
            f"{hint}"
        ) from None


def _attribute(target: Target) -> Any:
    """The factory: the attribute of the target's file or module."""
    if target.kind == "file":
        module = load(Path(target.where))
    else:
        without_arguments(target.where)
        try:
            module = importlib.import_module(target.where)
        except ModuleNotFoundError as error:
            if not f"{target.where}.".startswith(f"{error.name}."):
                raise  # another module, which that one imports
            raise WorkloadError(
                f"there is no module {error.name}; run the command where Python finds it, or name "
                "a file"
            ) from None
    try:
        return operator.attrgetter(target.factory)(module)
    except AttributeError:
        raise WorkloadError(f"{target.where} has no {target.factory}") from None


def _call(factory: Any, target: Target, batch_size: int) -> tuple[Any, bool]:
    """What the factory returns, and whether it took the batch size."""
    import torch

    if isinstance(factory, torch.nn.Module):
        return factory, False
    if not callable(factory):
        raise WorkloadError(f"{target.factory} is not a function that makes a model")
    parameters = inspect.signature(factory).parameters
    if "batch_size" in parameters:
        return factory(batch_size=batch_size), True
    needed = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise WorkloadError(
            f"{target.factory} must take no argument, or batch_size; it needs {', '.join(needed)}"
        )
    return factory(), False


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
    reset = more.pop(0) if more and _resets(more[0]) else None
    return Returned(returned) if more else Returned(module, inputs, reset)


def _resets(value: Any) -> bool:
    """Whether it is a function that needs no arguments. A module is none: a loss, say."""
    import torch

    if isinstance(value, torch.nn.Module) or not callable(value):
        return False
    signature = _signature(value)
    return signature is None or _takes(signature, ())


class _Both:
    """Inputs by position and by name."""

    def __init__(self, by_position: Any, by_name: Mapping[str, Any]) -> None:
        several = isinstance(by_position, (tuple, list))
        self.by_position = tuple(by_position) if several else (by_position,)
        self.by_name = dict(by_name)


def arranged_inputs(module: Callable[..., Any], inputs: Any) -> Inputs | None:
    """The inputs as a tuple by position or a dict by name, as the forward or function takes them.

    A list, a mapping or a named tuple is the one argument where the forward takes it only so. None
    if there are no inputs, and the forward needs some. Raises WorkloadError for inputs that the
    forward cannot take.
    """
    signature = _signature(module)
    if isinstance(inputs, _Both):
        return _by_name(signature, inputs)
    if inputs is None:
        return () if signature is not None and _takes(signature, ()) else None
    if isinstance(inputs, str | bytes) or not isinstance(inputs, (Mapping, Sequence)):
        return (inputs,)
    spread: Inputs
    if isinstance(inputs, Mapping):
        if not all(isinstance(name, str) for name in inputs):
            return (inputs,)
        spread = dict(inputs)
    else:
        spread = tuple(inputs)
    if signature is None or _takes(signature, spread) or not _takes(signature, (inputs,)):
        return spread
    return (inputs,)


def _signature(module: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of the module's forward, or of a function; None if it is not known."""
    try:
        return inspect.signature(getattr(module, "forward", module))
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


def batch_size_of(inputs: Inputs) -> int:
    """The first size of the first tensor; of a list of images, which torchvision's detection models
    take, the number of images: an image has three sizes, of which the first is its 1 or 3 channels.
    """
    from ..launch.values import of_inputs
    from ..launch.values import tensors as tensors_of

    first = next(iter(inputs.values() if isinstance(inputs, dict) else inputs), None)
    if isinstance(first, (tuple, list)):
        parts = tensors_of(first)
        if parts and all(part.dim() == 3 and part.size(0) in (1, 3) for part in parts):
            return len(parts)
    tensor = next((tensor for tensor in of_inputs(inputs) if tensor.dim()), None)
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
