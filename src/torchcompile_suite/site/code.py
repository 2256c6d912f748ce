"""What each point generates for targets: the same on all machines, so it is of none of them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from ..cell import Measurement
from ..results.records import Record
from .axis import Axis


class Code:
    """The measurements of cells with a target, by point, and what tells them."""

    def __init__(self, records: Iterable[Record], axis: Axis) -> None:
        """``records`` are those of cells with a target, of all machines."""
        self._of: dict[str, list[Measurement]] = defaultdict(list)
        for record in records:
            if point := axis.point(record):
                self._of[point].append(record.measurement)
        self._digests = {
            point: hashlib.sha256(msgspec.msgpack.encode(many)).hexdigest()
            for point, many in self._of.items()
        }

    def of(self, point: str) -> Sequence[Measurement]:
        """The measurements of a point."""
        return self._of.get(point, ())

    def digest(self, point: str) -> str:
        """What tells the measurements of a point, for keys of `results.cached`."""
        return self._digests.get(point, "")

    @property
    def key(self) -> list[str]:
        """What tells all of them."""
        return [part for point in sorted(self._digests.items()) for part in point]
