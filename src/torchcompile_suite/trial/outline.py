"""A workload before it is measured: its model, its inputs and its torch.

The outline is made in a process of its own, ``python -m torchcompile_suite.trial.outline``: the
caller must not import torch, and must survive whatever building the model does.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .. import workloads
from ..errors import SuiteError
from ..fields import Text
from ..host.places import in_packages
from ..launch import caches
from ..launch.messages import accept, folder, import_quietly

if TYPE_CHECKING:
    import torch


MODULE = "torchcompile_suite.trial.outline"


class Order(msgspec.Struct, frozen=True):
    """Describe the workload, called with that batch size."""

    workload: str
    batch_size: int


class Outline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workload's model and inputs, and the torch that builds it.

    - ``inputs``: dtype and shape of each tensor, such as ``float32 8x3x224x224``.
    - ``batch_size``: as `build.batch_size_of` says. ``scales``: another one can be asked for.
    - ``training``: the model came in training mode.
    - ``compiled``: the model's code compiles the model, or a part of it.
    - ``code``: a digest of the user's own source files that building the model imported.
    - ``gpu``: the GPU that this torch can use; empty if there is none.
    - ``notes``: what was changed about the model before anything was measured, one line each.
    - ``error``: why there is no model, in one line; empty if there is one.
    """

    torch: Text = ""
    threads: int = 0
    model: Text = ""
    parameters: int = 0
    inputs: list[Text] = []
    batch_size: int = 1
    scales: bool = True
    training: bool = False
    compiled: bool = False
    code: Text = ""
    gpu: Text = ""
    notes: list[Text] = []
    error: Text = ""


# A longer message, such as one that lists all names, would not be read by the parent process.
LONGEST = 4000


def outline(order: Order) -> Outline:
    """Build the workload and describe it. Never raises: a fault becomes ``error``."""
    try:
        import_quietly(["torch", *workloads.get(order.workload).imports])
        if "torch" not in sys.modules:
            raise SuiteError(
                f"torch does not import in {sys.executable}; see: torchcompile-suite doctor"
            )
        return _outline(order.workload, order.batch_size)
    except SuiteError as error:  # also of a workload file of the user's that cannot be used
        return Outline(error=str(error)[:LONGEST])
    except BaseException as error:
        from ..launch import failures

        return Outline(error=f"{order.workload} cannot be built: {failures.said_where(error)}")


def _outline(workload: str, batch_size: int) -> Outline:
    import torch
    from torch.nn.parameter import is_lazy

    from ..launch import original, state
    from ..launch.subject import SEED
    from ..launch.values import of_inputs
    from . import build
    from .target import from_environment

    state.seed(SEED)
    target = from_environment()
    if target is not None and target.name == workload:
        module, inputs, scales, notes = build.build(target, batch_size)
    else:
        module, inputs = workloads.get(workload).build(batch_size)
        scales, notes = True, []
    return Outline(
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
        model=type(module).__name__,
        parameters=sum(one.numel() for one in module.parameters() if not is_lazy(one)),
        inputs=[_description(tensor) for tensor in of_inputs(inputs)],
        batch_size=build.batch_size_of(inputs),
        scales=scales,
        training=module.training,
        compiled=original.as_given(module) is not None,
        code=_code(),
        gpu=torch.cuda.get_device_name() if torch.cuda.is_available() else "",
        notes=notes,
    )


def _code() -> str:
    """The digest of all imported source files that are no part of Python, a package or the suite.

    Files that cannot be read are left out.
    """
    others = (Path(sysconfig.get_path("stdlib")).resolve(), Path(__file__).resolve().parents[1])
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    content = hashlib.sha256()
    for path in sorted(Path(file).resolve() for file in files if file):
        own = not in_packages(str(path))
        if path.suffix == ".py" and own and not any(map(path.is_relative_to, others)):
            with contextlib.suppress(OSError):
                content.update(path.read_bytes())
    return content.hexdigest()


def _description(tensor: torch.Tensor) -> str:
    """Dtype and shape of a tensor, and its kind if it is not dense."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_nested:
        return f"nested {dtype} of {tensor.size(0)} parts"
    kind = "" if str(tensor.layout) == "torch.strided" else f" ({tensor.layout})"
    return f"{dtype} {'x'.join(map(str, tensor.shape)) or 'scalar'}{kind}"


def main() -> None:
    """Describe the workload of the order."""
    connection = accept()
    order = msgspec.json.decode(connection.recv_bytes(), type=Order)
    # As in a launch: only then is it seen that the model's code sets another folder.
    caches.use(folder("outline"))
    connection.send_bytes(msgspec.json.encode(outline(order)))


if __name__ == "__main__":
    main()
