"""All machines of a cluster, inspected at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from .driver import Transport
from .messages import START_S, Described, Failed, Order


class Checkup(NamedTuple):
    """The descriptions by machine, and the faults of the others, in words."""

    described: dict[str, Described]
    faults: list[str]


def checkup(transport: Transport, releases: Sequence[str], python: str) -> Checkup:
    """Inspect every machine in the cluster, beside what is measured there.

    A doctor's look takes seconds of a processor, so it can disturb a launch that runs. Raises
    ClusterLost.
    """
    found, faults = transport.machines()
    pieces = {}
    for name in sorted(found):
        order = Order(name, inspect=True, releases=tuple(releases), python=python)
        pieces[transport.start(order, [name], slot=False)] = name
    described: dict[str, Described] = {}
    until = time.monotonic() + START_S
    while pieces and time.monotonic() < until:
        for event in transport.hear(1.0):
            name = pieces.get(event.piece, "")
            if isinstance(event.said, Described):
                described[name] = event.said
            elif isinstance(event.said, Failed):
                faults.append(f"{name}: {event.said.reason}")
            elif event.said is None:
                pieces.pop(event.piece, None)
                if event.fault:
                    faults.append(f"{name}: {event.fault}")
    faults += [f"{name}: no answer within {START_S:.0f} s" for name in pieces.values()]
    return Checkup(described, faults)
