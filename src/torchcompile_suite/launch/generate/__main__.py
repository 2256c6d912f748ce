"""``python -m torchcompile_suite.launch.generate``: generates code for one target, on demand.

Gets `Order` after `Order` over its connection, and answers each with a `measurement.Launch`. The
environment names the target. `engine.generation` starts it. The process first starts itself
again, with the answers of the device preloaded.
"""

from __future__ import annotations

import importlib
import os
import sys

import msgspec

from ... import targets
from ...measurement import Launch, Outcome, Status
from .. import caches, failures
from ..messages import GENERATOR, TARGET_VARIABLE, Order, accept, folder
from . import absent


def main() -> None:
    """Serve until the connection ends."""
    target = targets.get(os.environ[TARGET_VARIABLE])
    reason = ""
    if not absent.preloaded():
        try:
            absent.start_again(target, ["-m", GENERATOR, *sys.argv[1:]])
        except (absent.Absent, OSError) as error:
            reason = str(error)
    connection = accept()
    caches.use(folder("generated"))
    reason = reason or _answer(target)
    while True:
        try:
            order = msgspec.json.decode(connection.recv_bytes(), type=Order)
        except EOFError:
            return
        connection.send_bytes(msgspec.json.encode(_launch(order, target, reason)))


def _answer(target: targets.Target) -> str:
    """Import the compiler, and answer for the device. Returns why that cannot be done here."""
    try:
        importlib.import_module("torch._subclasses.fake_tensor")
    except Exception as error:
        return f"torch does not import: {type(error).__name__}: {error}"
    try:
        absent.give(target)
    except failures.Unsupported as error:
        return str(error)
    except Exception as error:
        return failures.one_line(f"{type(error).__name__}: {error}")
    return ""


def _launch(order: Order, target: targets.Target, reason: str) -> Launch:
    """``reason``: why this Python cannot generate code for the target."""
    if reason:
        return Launch("cold", Outcome(Status.UNSUPPORTED, reason[:4000]))
    from .generate import generate

    return generate(order, target)


if __name__ == "__main__":
    main()
