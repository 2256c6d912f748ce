"""What a measuring process and the process that drives it say to each other.

The driver starts one or two processes for a launch and sends each a `Request`. Then, in this
order: a process says `Imported`; the driver says `Go`; the process warms up and says `Ready`; the
driver asks for turns, one `Turn` at a time, and gets a `Timed` for each; the driver says `Finish`,
and the process says `Ended`. A process that fails says `Ended` at once.

A process that is a turn by itself (`starts`) says `FirstResult`, hears `Finish`, and says `Ended`.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from ..fields import Seconds
from ..measurement import Launch
from ..request import Side


class Imported(Struct, tag=True, frozen=True):
    """The process has imported torch and waits."""


class Go(Struct, tag=True, frozen=True):
    """Build, compile and warm up now: no other process works."""


class Ready(Struct, tag=True, frozen=True):
    """The process is warm. ``steady_s``: seconds a call of each of its sides. ``threads``: those
    that its calls use.
    """

    steady_s: dict[Side, Seconds]
    threads: int


class Turn(Struct, tag=True, frozen=True):
    """Call one side. Calls in the first ``settle_s`` seconds do not count; those in the next
    ``turn_s`` seconds do. The clock is read every ``count`` calls.
    """

    side: Side
    count: int
    settle_s: Seconds
    turn_s: Seconds


class Timed(Struct, tag=True, frozen=True):
    """The calls of a turn that count: seconds a call, their number, their page faults, and the
    processor time that they used, in the kernel and in all. ``single_s``: seconds of a call that is
    waited for, on a device that works on its own.
    """

    call_s: Seconds
    calls: int
    faults: int
    kernel_s: Seconds
    cpu_s: Seconds
    single_s: Seconds | None = None


class FirstResult(Struct, tag=True, frozen=True):
    """The process has its first result. ``ended_s``: when each phase ended, by the monotonic clock
    of the system, in order.
    """

    ended_s: dict[str, float]


class Finish(Struct, tag=True, frozen=True):
    """No further turns."""


class Ended(Struct, tag=True, frozen=True):
    """The process ends. ``launch`` has what it knows, without pairs."""

    launch: Launch


Said: TypeAlias = Imported | Ready | Timed | FirstResult | Ended
Asked: TypeAlias = Go | Turn | Finish

encode = msgspec.json.encode


def decode_said(data: bytes) -> Said:
    """A message of a measuring process."""
    said: Said = msgspec.json.decode(data, type=Said)
    return said


def decode_asked(data: bytes) -> Asked:
    """A message of the driver."""
    asked: Asked = msgspec.json.decode(data, type=Asked)
    return asked
