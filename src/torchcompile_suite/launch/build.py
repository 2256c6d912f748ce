"""Builds the subject of a cell: its workload on its device, and its calls."""

from __future__ import annotations

import torch

from .. import workloads
from ..cell import Cell
from . import failures, original, state
from .forward import Forward, ForwardAgainstFloat32, Quantised, arrange, arranged
from .stream import ShapeStream
from .subject import SEED, Inputs, Subject, weights
from .training import TrainingStep
from .values import mapped, tensors


def build(cell: Cell) -> Subject:
    """Build the cell's workload on its device, with a fixed seed, and the calls of the cell.

    Raises `failures.Unsupported` if the workload lacks what the cell needs.
    """
    workload = workloads.get(cell.workload)

    def make() -> tuple[torch.nn.Module, Inputs]:
        state.seed(SEED)
        return workload.build(cell.batch_size)

    def placed(inputs: Inputs) -> Inputs:
        return arranged(cell, to_device(inputs, cell.device))  # type: ignore[no-any-return]

    module, inputs = make()
    train = cell.phase == "training" or cell.protocol == "train-mode"
    ready(module, train, cell.device)
    arrange(cell, module)
    inputs = placed(inputs)
    if cell.phase == "training":
        return TrainingStep(cell, module, inputs, lambda: make()[0])
    if cell.shapes != "static":
        if workload.stream is None:
            raise failures.Unsupported(f"workload {cell.workload!r} has no stream of shapes")
        if original.has_reset(module):
            raise failures.Unsupported(
                "the factory's reset is for one call, and a pass over a stream of shapes makes "
                "several: measure each batch size on its own"
            )
        requests_of = workload.stream
        # More shapes than Dynamo compiles of one function: `recompile_limit` is 8.
        factors = (1, 2) if cell.protocol == "many-calls" else (1,)

        def stream(size: int) -> list[Inputs]:
            requests = [request for factor in factors for request in requests_of(factor * size)]
            return [placed(request) for request in requests]

        return ShapeStream(cell, module, stream)
    if cell.quantised:
        return Quantised(cell, module, inputs)
    if cell.baseline == "eager-float32" and cell.dtype != "float32":
        return ForwardAgainstFloat32(cell, module, inputs)
    return Forward(cell, module, inputs)


def ready(module: torch.nn.Module, train: bool, device: str) -> None:
    """Set the module's mode and device, in place: a module of a user's own may return nothing.

    An exported module refuses `eval`, because its mode is fixed: it stays as it is. Raises
    `failures.Unsupported` if the module refuses to train, or to move.
    """
    try:
        module.train(train)
    except Exception as error:
        if train:
            raise _refused(module, "train()", error) from error
    if device == "cpu" and all(tensor.is_cpu for tensor in weights(module)):
        return
    if device == "cuda":
        used = {tensor.device for tensor in weights(module) if tensor.is_cuda}
        here = torch.device(device, torch.cuda.current_device())
        if others := sorted(map(str, used - {here})):
            raise failures.Unsupported(
                f"the model is on {', '.join(others)}, and one GPU is measured, {here}: put it "
                "there, or choose its GPU with CUDA_VISIBLE_DEVICES"
            )
    try:
        module.to(device)
    except (AttributeError, NotImplementedError, TypeError) as error:
        raise _refused(module, f"to({device!r})", error) from error


def _refused(module: torch.nn.Module, call: str, error: Exception) -> failures.Unsupported:
    reason = failures.said(error)
    return failures.Unsupported(f"{type(module).__name__} refuses {call}: {reason}")


def to_device(inputs: Inputs, device: str) -> Inputs:
    """The inputs with all tensors on that device; as they are if the factory has put some there: it
    knows which of them stay on the host.
    """
    if any(tensor.device.type == device for tensor in tensors(inputs)) and device != "cpu":
        return inputs
    return mapped(lambda tensor: tensor.to(device), inputs)  # type: ignore[no-any-return]
