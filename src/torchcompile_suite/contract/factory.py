"""``python -m torchcompile_suite.contract.factory``: counts for one model of a user's, on demand.

The model is named as for `try`. A process of its own builds it: the caller must not import torch,
and must survive whatever the user's code does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .. import targets
from ..errors import SuiteError
from ..fields import Text
from ..launch import caches
from ..launch.generate import absent
from ..launch.messages import TARGET_VARIABLE, accept, folder
from ..trial.target import Target
from .counts import Counts

if TYPE_CHECKING:
    import torch

MODULE = "torchcompile_suite.contract.factory"


class Order(msgspec.Struct, frozen=True):
    """Count for the target.

    - ``batch_sizes``: the model is called with each; empty for its own inputs.
    - ``options``: of torch.compile. ``training``: with gradients, in the mode that it comes in.
    - ``folder``: what places are relative to. ``device``: a name of `targets` is a GPU that is not
      here; the process must have been started for it.
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
    counts: Counts | None = None
    error: str = ""


def count(order: Order) -> Counted:
    """Build the model and count what torch.compile makes of it. A fault becomes ``error``."""
    from ..launch import failures

    try:
        return _count(order)
    except (SuiteError, failures.Unsupported) as error:
        return Counted(error=str(error))
    except BaseException as error:
        return Counted(error=f"{order.target.name} fails: {failures.said_where(error)}")


def _count(order: Order) -> Counted:
    import torch

    from ..launch import original
    from ..launch.build import ready, to_device
    from ..trial import build
    from . import calls
    from .counting import counting

    device = "cpu" if order.device in targets.read() else order.device
    torch.manual_seed(0)
    models = [build.build(order.target, size) for size in order.batch_sizes or (1,)]
    module = models[0].module
    if order.training:
        module.to(device)
    else:
        ready(module, False, device)
    given = calls.inputs_of([to_device(model.inputs, device) for model in models])
    compiled = _for_target if device != order.device else _here
    with (
        counting(Path(order.folder)) as counted,
        torch.set_grad_enabled(order.training),
        compiled(module, order) as call,
    ):
        # Values that the model draws, and guards on them, are the same in each run.
        torch.manual_seed(0)
        after = partial(original.reset, module)
        calls.make(call, given, backward=order.training, after=after)
    return Counted(str(torch.__version__), counted.counts)


@contextmanager
def _here(module: torch.nn.Module, order: Order) -> Iterator[Callable[..., Any]]:
    """The compiled module: as the user's code compiles it, if that does."""
    from ..launch import original
    from . import calls

    given = original.as_given(module)
    if given is None:
        yield calls.compiled(module, order.options)
        return
    if order.options:
        given_options = ", ".join(order.options)
        raise SuiteError(f"{order.target.name} is compiled already: leave out {given_options}")
    given.put(compiled=True)
    yield given.module


@contextmanager
def _for_target(module: torch.nn.Module, order: Order) -> Iterator[Callable[..., Any]]:
    """The module, of which each graph is compiled for the target, and runs in eager here."""
    import torch

    from ..launch import original
    from ..launch.generate import generate, hooks
    from ..launch.generate.recorder import Recorder

    options = dict(order.options)
    if "backend" in options:
        raise SuiteError(f"backend {options['backend']} generates no code for {order.device}")
    if original.as_given(module) is not None:
        raise SuiteError(
            f"{order.target.name} is compiled already; return the module itself, so that its "
            f"graphs can be compiled for {order.device}"
        )
    errors: list[Exception] = []
    backend = generate.for_target(
        torch._inductor.list_mode_options(options.pop("mode", "default")), errors
    )
    try:
        with hooks.watching(Recorder()):
            yield torch.compile(module, backend=backend, **options)
    except absent.NoLaunch:
        raise SuiteError(
            f"{order.target.name} has a Triton kernel of its own, which cannot run without the "
            f"device: no counts for {order.device}"
        ) from None
    if errors:
        raise generate.explained(errors[0])


def main() -> None:
    """Count for the order."""
    target = targets.read().get(os.environ.get(TARGET_VARIABLE, ""))
    failed = absent.enter(target, MODULE) if target else None
    connection = accept()
    if target:
        caches.use(folder("generated"))
        failed = failed or absent.answer(target)
    order = msgspec.json.decode(connection.recv_bytes(), type=Order)
    os.chdir(order.folder)
    counted = count(order) if failed is None else Counted(error=failed.reason)
    connection.send_bytes(msgspec.json.encode(counted))


if __name__ == "__main__":
    main()
