"""``python -m torchcompile_suite.launch.generate``: generates code for one target, on demand.

Gets `Order` after `Order` over its connection, and answers each with a `measurement.Launch`. The
environment names the target. `engine.launches` starts it. The process first starts itself
again, with the answers of the device preloaded.
"""

from __future__ import annotations

import os

import msgspec

from ... import targets
from ...measurement import Launch, Outcome, Status
from .. import caches, progress
from ..messages import GENERATOR, TARGET_VARIABLE, Order, accept, folder
from . import absent


def main() -> None:
    """Serve until the connection ends."""
    target = targets.get(os.environ[TARGET_VARIABLE])
    reason = absent.enter(target, GENERATOR)
    connection = accept()
    progress.answer()
    caches.use(folder("generated"))
    reason = reason or absent.answer(target)
    while True:
        try:
            order = msgspec.json.decode(connection.recv_bytes(), type=Order)
        except EOFError:
            return
        connection.send_bytes(msgspec.json.encode(_launch(order, target, reason)))


def _launch(order: Order, target: targets.Target, reason: str) -> Launch:
    """``reason``: why this Python cannot generate code for the target."""
    if reason:
        return Launch("cold", Outcome(Status.UNSUPPORTED, reason[:4000]))
    from .generate import generate

    return generate(order, target)


if __name__ == "__main__":
    main()
