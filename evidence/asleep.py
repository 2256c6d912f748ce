"""A series that sleeps: what `evidence.fleet` does instead of measuring. It imports little.

Ray starts a process for each piece of work, and each imports this module.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from torchcompile_suite.engine.journal import Line
from torchcompile_suite.fleet import inspection, messages
from torchcompile_suite.fleet.messages import Began, Finished, Kept, Order, Said
from torchcompile_suite.host import machine
from torchcompile_suite.measurement import Measurement

ROUNDS = 3


def said_by(order: Order, record: Measurement) -> Iterator[Said]:
    """Everything that a machine says of a series, with real sizes."""
    assert order.series is not None
    yield Began()
    for number, one in enumerate(record.launches[:ROUNDS], 1):
        launch = msgspec.structs.replace(one, series=order.lines[0].name, round=number)
        for release in order.series.releases:
            yield Kept(Line(release=release, launch=launch, taken_s=10.0), 1200.0)
        yield Kept(Line(ended=number), 1200.0)
    yield Finished(machine.fields(order.machine))


def asleep(order: Order, seconds: Mapping[str, float], record: bytes, log: str) -> Iterator[bytes]:
    """A piece of work that sleeps: what `plain.lines` says, but without a process of its own."""
    if order.series is None:
        yield messages.encode(inspection.described(order))
        return
    begun = time.time()
    time.sleep(seconds[order.id])
    with Path(log).open("a") as stream:
        stream.write(json.dumps([order.machine, begun, time.time()]) + "\n")
    for said in said_by(order, msgspec.json.decode(record, type=Measurement)):
        yield messages.encode(said)
