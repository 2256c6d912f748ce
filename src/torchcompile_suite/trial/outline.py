"""What a workload is, before it is measured: built once, called never.

Runs in a process of its own, so that whoever asks stays without torch and survives whatever
building does.
"""

from __future__ import annotations

import msgspec

from ..cell import Text
from ..errors import SuiteError


class Outline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workload's model and inputs, and the torch that builds it.

    ``inputs`` are dtypes and shapes in the order of the call, such as ``float32 8x3x224x224``.
    ``batch_size`` is the first size of the first tensor; ``scales`` says whether another one can be
    asked for. ``training`` is the mode that the model came in. ``error`` is empty, or one line that
    says why there is no model.
    """

    torch: Text = ""
    threads: int = 0
    model: Text = ""
    parameters: int = 0
    inputs: list[Text] = []
    batch_size: int = 1
    scales: bool = True
    training: bool = False
    error: Text = ""


def outline(workload: str, batch_size: int) -> Outline:
    """Build the workload and look at it. Never raises: what goes wrong is ``error``."""
    from ..launch import failures

    try:
        return _outline(workload, batch_size)
    except SuiteError as error:
        return Outline(error=str(error))
    except BaseException as error:
        where = failures.where(error)
        said = failures.one_line(f"{type(error).__name__}: {error}")
        return Outline(error=f"{workload} cannot be built: {said}{f' ({where})' if where else ''}")


def _outline(workload: str, batch_size: int) -> Outline:
    import torch
    from torch.utils._pytree import tree_leaves

    from .. import workloads
    from . import target

    torch.manual_seed(0)
    given = target.given()
    if given is not None and given.name == workload:
        module, inputs, scales = target.make(given, batch_size)
    else:
        module, inputs = workloads.get(workload).build(batch_size)
        scales = True
    tensors = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    first = next((tensor for tensor in tensors if tensor.dim()), None)
    return Outline(
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
        model=type(module).__name__,
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        inputs=[_described(tensor) for tensor in tensors],
        batch_size=1 if first is None else first.shape[0],
        scales=scales,
        training=module.training,
    )


def _described(tensor: object) -> str:
    shape = "x".join(map(str, tensor.shape)) or "scalar"  # type: ignore[attr-defined]
    return f"{str(tensor.dtype).removeprefix('torch.')} {shape}"  # type: ignore[attr-defined]
