"""What a service does after its first result, when no clock runs: it is checked, and ends."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import torch

from ...conditions import Environment
from ...measurement import OK, Accuracy, Launch, Outcome
from .. import accuracy, device, environment, failures, messages
from .orders import EXPECTED, Service


def checked(connection: int, order: dict[str, Any], result: Any) -> None:
    """Wait for the driver. Then compare the first result, and say what this process knows."""
    talk = Connection(connection)
    messages.decode_asked(talk.recv_bytes())  # messages.Finish
    told = msgspec.convert(order, Service)
    outcome, compared = OK, None
    try:
        _captured(told)
        compared = _compared(Path(told.folder, EXPECTED), result)
        if reason := accuracy.wrong(compared):
            raise failures.WrongResult(reason)
    except Exception as error:
        outcome = failures.outcome(error, "accuracy")
    described = environment.describe(device.get(told.device), os.getloadavg()[0])
    _end(talk, told, outcome, compared, described)


def failed(connection: int, order: dict[str, Any], error: Exception, stage: str) -> None:
    """Say that there is no first result. ``stage``: as in `failures.outcome`."""
    told = msgspec.convert(order, Service)
    _end(Connection(connection), told, failures.outcome(error, stage), None, None)


def _captured(told: Service) -> None:
    """Raise `failures.Unsupported` if the service had to compile, and Dynamo captured nothing."""
    if told.start in ("uncached", "disk-cache", "carried-cache"):
        # The compiler is imported: the first call has used it.
        from ..inspect import versions

        if not versions.captures():
            raise failures.Unsupported(versions.NO_GRAPH)


def _compared(expected_file: Path, result: Any) -> Accuracy:
    eager, expected, reference, random = torch.load(expected_file, weights_only=False)
    return accuracy.compare(eager, result, expected, reference, "float32", random)


def _end(
    talk: Connection,
    told: Service,
    outcome: Outcome,
    compared: Accuracy | None,
    described: Environment | None,
) -> None:
    launch = Launch(
        told.kind, outcome, accuracy=compared, environment=described, preloaded=[], heap="default"
    )
    talk.send_bytes(messages.encode(messages.Ended(launch)))
