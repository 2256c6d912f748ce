"""A series that sleeps: what `evidence.fleet` does instead of measuring. It imports little.

Ray starts a process for each piece of work, and each imports this module.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from torchcompile_suite.fleet import inspection, messages
from torchcompile_suite.fleet.messages import Began, Finished, Launched, Measured, Order, Said
from torchcompile_suite.host import machine
from torchcompile_suite.measurement import Measurement
from torchcompile_suite.results import segments
from torchcompile_suite.results.segments import Header, Segment, canonical

ROUNDS = 3


def said_by(order: Order, record: Measurement) -> Iterator[Said]:
    """Everything that a machine says of a series, with real sizes."""
    assert order.series is not None
    yield Began(0)
    for number in range(1, ROUNDS + 1):
        for release in order.series.releases:
            text = "23.4 ms a call, 0.87 of eager's time"
            yield Launched(release, number, text, 1200.0)
    launches = [
        msgspec.structs.replace(one, series=order.id, round=number)
        for number, one in enumerate(record.launches[:ROUNDS], 1)
    ]
    measurement = msgspec.structs.replace(record, cell=order.series.cell, launches=launches)
    line = canonical(msgspec.json.encode(measurement))
    for release in order.series.releases:
        header = Header(order.machine, release, order.commits[release], order.environment)
        path, data = segments.encode(Segment(header, [line]))
        yield Measured(release, str(path), data)
    yield Finished(machine.fields(order.machine), "all of them 0.870")


def asleep(order: Order, seconds: Mapping[str, float], record: bytes, log: str) -> Iterator[bytes]:
    """A piece of work that sleeps: what `plain.lines` says, but without a process of its own."""
    if order.inspect:
        yield messages.encode(inspection.described(order))
        return
    if order.series is None:
        return
    begun = time.time()
    time.sleep(seconds[order.id])
    with Path(log).open("a") as stream:
        stream.write(json.dumps([order.machine, begun, time.time()]) + "\n")
    # The work of a machine that says it: on a real fleet it is done on that machine's processors.
    for said in said_by(order, msgspec.json.decode(record, type=Measurement)):
        if not isinstance(said, Launched):
            yield messages.encode(said)
