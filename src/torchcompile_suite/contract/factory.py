"""``python -m torchcompile_suite.contract.factory``: counts for one model of a user's, on demand.

The model is named as for `try`. A process of its own builds it: the caller must not import torch,
and must survive whatever the user's code does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from ..errors import SuiteError
from ..fields import Text
from ..launch.messages import accept
from ..trial.target import Target
from .counts import Counts

MODULE = "torchcompile_suite.contract.factory"


class Order(msgspec.Struct, frozen=True):
    """Count for the target.

    - ``batch_sizes``: the model is called with each; empty for its own inputs.
    - ``options``: of torch.compile. ``training``: with gradients, in the mode that it comes in.
    - ``folder``: what places are relative to.
    """

    target: Target
    folder: str
    batch_sizes: tuple[int, ...] = ()
    options: dict[str, Any] = {}
    training: bool = False
    device: str = "cpu"


class Counted(msgspec.Struct, frozen=True):
    """The counts, and the version of torch; or why there are none, in one line."""

    torch: Text = ""
    device: Text = "cpu"
    counts: Counts | None = None
    error: str = ""


def count(order: Order) -> Counted:
    """Build the model and count what torch.compile makes of it. A fault becomes ``error``."""
    from ..launch import failures

    try:
        return _count(order)
    except SuiteError as error:
        return Counted(error=str(error))
    except BaseException as error:
        where = failures.where(error)
        reason = failures.one_line(f"{type(error).__name__}: {error}")
        return Counted(error=f"{order.target.name} fails: {reason}{f' ({where})' if where else ''}")


def _count(order: Order) -> Counted:
    import torch

    from ..launch.build import to_device
    from ..trial import build
    from . import calls
    from .counting import counting

    torch.manual_seed(0)
    models = [build.build(order.target, size) for size in order.batch_sizes or (1,)]
    module = models[0].module
    if not order.training:
        module.eval()
    module.to(order.device)
    given = calls.inputs_of([to_device(model.inputs, order.device) for model in models])
    with counting(Path(order.folder)) as counted, torch.set_grad_enabled(order.training):
        # Values that the model draws, and guards on them, are the same in each run.
        torch.manual_seed(0)
        calls.make(calls.compiled(module, order.options), given, backward=order.training)
    return Counted(str(torch.__version__), counted.device, counted.counts)


def main() -> None:
    """Count for the order."""
    connection = accept()
    order = msgspec.json.decode(connection.recv_bytes(), type=Order)
    os.chdir(order.folder)
    connection.send_bytes(msgspec.json.encode(count(order)))


if __name__ == "__main__":
    main()
