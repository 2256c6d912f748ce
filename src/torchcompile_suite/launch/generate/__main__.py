"""``python -m torchcompile_suite.launch.generate``: generates code for one target, on demand.

Gets `Order` after `Order` over its connection, and answers each with a `measurement.Launch`. The
environment names the target. `engine.launches` starts it. The process first starts itself
again, with the answers of the device preloaded.
"""

from __future__ import annotations

import os

import msgspec

from ... import targets
from ...measurement import Launch, Outcome
from .. import caches, progress
from ..messages import GENERATOR, TARGET_VARIABLE, Order, accept, folder
from . import absent


def main() -> None:
    """Serve until the connection ends."""
    target = targets.get(os.environ[TARGET_VARIABLE])
    failed = absent.enter(target, GENERATOR)
    connection = accept()
    progress.answer()
    caches.use(folder("generated"))
    failed = failed or absent.answer(target)
    while True:
        try:
            order = msgspec.json.decode(connection.recv_bytes(), type=Order)
        except EOFError:
            return
        connection.send_bytes(msgspec.json.encode(_launch(order, target, failed)))


def _launch(order: Order, target: targets.Target, failed: Outcome | None) -> Launch:
    """``failed``: why this Python cannot generate code for the target."""
    if failed is not None:
        return Launch("cold", failed)
    from .generate import generate

    return generate(order, target)


if __name__ == "__main__":
    main()
