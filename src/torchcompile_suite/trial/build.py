"""Builds the model of a target with torch, and registers it as a workload."""

from __future__ import annotations

import difflib
import importlib
import inspect
import operator
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..workloads import WorkloadError, workload
from . import script
from .target import Shape, Target, shapes

if TYPE_CHECKING:
    import torch

    from ..workloads import Built, Inputs

FAMILY = "target"


class Model(NamedTuple):
    """A module, the inputs of one call, and whether another batch size can be asked for."""

    module: torch.nn.Module
    inputs: Inputs
    scales: bool


def build(target: Target, batch_size: int) -> Model:
    """Build the target. Raises WorkloadError, or any exception of the user's code."""
    if target.kind == "pickle":
        module, inputs = pickle.loads(Path(target.where).read_bytes())
        return Model(module, inputs, scales=False)
    if target.kind == "timm":
        module, inputs = _timm(target.where, batch_size)
        # Given shapes replace timm's inputs: then they decide whether the batch size can change.
        return _model(target, module, inputs, batch_size, scales=not target.inputs)
    returned, scales = _call(_attribute(target), target, batch_size)
    is_pair = isinstance(returned, (tuple, list)) and len(returned) == 2
    module, inputs = returned if is_pair else (returned, None)
    return _model(target, module, inputs, batch_size, scales)


def register(target: Target) -> None:
    """Register the target as a workload with its name."""

    def make(batch_size: int) -> Built:
        module, inputs, _ = build(target, batch_size)
        return module, inputs

    def stream(batch_size: int) -> list[Inputs]:
        # The sizes are named for the first one; for a larger batch size, all are larger by as much.
        more = batch_size - target.stream[0]
        return [make(size + more)[1] for size in target.stream]

    workload(
        target.name,
        family=FAMILY,
        imports=("timm",) if target.kind == "timm" else (),
        stream=stream if target.stream else None,
    )(make)


def _model(target: Target, module: Any, inputs: Any, batch_size: int, scales: bool) -> Model:
    """Check the module, and complete its inputs.

    ``inputs`` is what the factory returned, or None. Shapes of the command line replace it.
    ``scales``: the factory took the batch size.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise WorkloadError(
            f"{target.factory} must return a torch.nn.Module, with or without its example inputs; "
            f"it returns {type(module).__name__}"
        )
    given = shapes(target.inputs)
    if given:
        inputs = _random_inputs(given, batch_size)
        scales = scales or any(shape.scales for shape in given)
    elif inputs is None:
        raise WorkloadError(
            f"{target.factory} returns a module alone; give its inputs: --input 8x3x224x224:float32"
        )
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if isinstance(inputs, list):
        inputs = tuple(inputs)
    if not isinstance(inputs, (tuple, dict)):
        raise WorkloadError(
            f"{target.factory} returns inputs of type {type(inputs).__name__}; return a tuple (by "
            "position) or a dict (by name)"
        )
    return Model(module, inputs, scales)


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
