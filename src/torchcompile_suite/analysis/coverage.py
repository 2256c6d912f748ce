"""How much of the matrix a release has: numbers, outcomes with a reason, and gaps without one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ..cell import Cell, Compiled, Measurement
from ..modes import EAGER

# Fields of a `Compiled` that are a number or, in ``unknown``, a reason.
NUMBERS = tuple(
    field.encode_name for field in msgspec.structs.fields(Compiled) if field.default is None
)


class Coverage(NamedTuple):
    """The wanted cells of one release: how many have numbers, which ended otherwise and why, which
    were not measured, and which lack a number without saying why (``cell: what``).
    """

    ok: int
    ended: list[Measurement]
    missing: list[Cell]
    unexplained: list[str]


def coverage(measurements: Iterable[Measurement], wanted: Iterable[Cell], device: str) -> Coverage:
    """Look up the wanted cells, on that device, among a release's measurements."""
    found = {each.cell: each for each in measurements}
    made = Coverage(0, [], [], [])
    ok = 0
    for plain in wanted:
        cell = msgspec.structs.replace(plain, device=device)
        measurement = found.get(cell)
        if measurement is None:
            made.missing.append(cell)
        elif measurement.outcome.ok:
            ok += 1
            made.unexplained.extend(f"{cell}: {what}" for what in _silent(measurement))
        else:
            made.ended.append(measurement)
            if not measurement.outcome.reason:
                made.unexplained.append(f"{cell}: {measurement.outcome.status.value}")
    return made._replace(ok=ok)


def _silent(measurement: Measurement) -> list[str]:
    """What a measurement with numbers lacks without a reason."""
    if measurement.cell.mode == EAGER:
        return []
    compiled = measurement.compiled
    if compiled is None:
        return ["what the compiler saw"]
    return [
        name
        for name in NUMBERS
        if compiled.value(name) is None and not compiled.unknown.get(name)
    ]
