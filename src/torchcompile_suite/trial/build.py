"""Builds the model of a target with torch, and registers it as a workload."""

from __future__ import annotations

import difflib
import importlib
import inspect
import operator
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..launch import caches
from ..workloads import WorkloadError, workload
from . import inputs, script
from .target import Shape, Target, shapes

if TYPE_CHECKING:
    import torch

    from ..workloads import Built, Inputs

FAMILY = "target"


class Model(NamedTuple):
    """A module, the inputs of one call, and whether another batch size can be asked for.

    ``notes``: what was changed about the model, one line each.
    """

    module: torch.nn.Module
    inputs: Inputs
    scales: bool
    notes: list[str]


def build(target: Target, batch_size: int) -> Model:
    """Build the target. Raises WorkloadError, or any exception of the user's code."""
    with caches.left_to_the_user() as changed:
        returned, scales = _returned(target, batch_size)
    notes = [
        f"the model's code sets {name}: the suite's own folder is used instead, so that a cold "
        "start is cold"
        for name in changed
    ]
    return _model(target, returned, batch_size, scales, notes)


def _returned(target: Target, batch_size: int) -> tuple[inputs.Returned, bool]:
    """Module and inputs as the user's code makes them; and whether it took the batch size."""
    if target.kind == "pickle":
        module, given = pickle.loads(Path(target.where).read_bytes())
        return inputs.Returned(module, given), False
    if target.kind == "timm":
        module, given = _timm(target.where, batch_size)
        # Given shapes replace timm's inputs: then they decide whether the batch size can change.
        return inputs.Returned(module, given), not target.inputs
    returned, scales = _call(_attribute(target), target, batch_size)
    return inputs.divided(returned), scales


def register(target: Target) -> None:
    """Register the target as a workload with its name."""

    def make(batch_size: int) -> Built:
        model = build(target, batch_size)
        return model.module, model.inputs

    def stream(batch_size: int) -> list[Inputs]:
        # The sizes are named for the first one; for a larger batch size, all are larger by as much.
        more = batch_size - target.stream[0]
        return [make(size + more)[1] for size in target.stream]

    workload(
        target.name,
        family=FAMILY,
        imports=("timm",) if target.kind == "timm" else (),
        foreign=True,
        stream=stream if target.stream else None,
    )(make)


def _model(
    target: Target, returned: inputs.Returned, batch_size: int, scales: bool, notes: list[str]
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
            f"it returns {type(module).__name__}"
        )
    module, note = original(module)
    if reset is not None:
        keep_reset(module, reset)
    asked = shapes(target.inputs)
    if asked:
        given = _random_inputs(asked, batch_size)
        scales = scales or any(shape.scales for shape in asked)
    arranged = inputs.arranged(module, given)
    if arranged is None:
        raise WorkloadError(
            f"{target.factory} returns a module alone; give its inputs: --input "
            f"8x3x224x224:float32, or {inputs.FORMS}"
        )
    inputs.check(module, arranged)
    _initialise(module, arranged)
    return Model(module, arranged, scales, [*notes, *filter(None, [note])])


def _initialise(module: torch.nn.Module, arranged: Inputs) -> None:
    """Call a lazy module once, so that its weights have their sizes."""
    import torch
    from torch.nn.parameter import is_lazy

    from ..launch.subject import apply

    if any(map(is_lazy, (*module.parameters(), *module.buffers()))):
        with torch.no_grad():
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
    import timm

    from ..workloads.timm_models import build as build_timm

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
        module = script.load(Path(target.where))
    else:
        script.without_arguments(target.where)
        try:
            module = importlib.import_module(target.where)
        except ModuleNotFoundError as error:
            if error.name not in _with_parents(target.where):
                raise
            raise WorkloadError(
                f"there is no module {error.name}; run the command where Python finds it, or name "
                "a file"
            ) from None
    try:
        return operator.attrgetter(target.factory)(module)
    except AttributeError:
        raise WorkloadError(f"{target.where} has no {target.factory}") from None


def _with_parents(module: str) -> set[str]:
    """The module's name and the names of its parent packages."""
    parts = module.split(".")
    return {".".join(parts[: count + 1]) for count in range(len(parts))}


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
