"""What one measuring process is asked for, and how long calls are timed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .cell import Cell
from .fields import SCHEMA, Count, Schema, Seconds, Text

Side = Literal["eager", "mode"]
Heap = Literal["", "default", "settled"]


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """How long one launch works. docs/method.md gives the reasons for the numbers.

    Warm-up ends when the calls are steady (`statistics.is_steady`) or after ``warm_up_limit_s``.
    Eager and the mode take turns. A turn is calls for ``settle_s``, which do not count, then calls
    for ``turn_s``, which count. Two turns are a pair. Timing ends when both minima are met and the
    standard error of the ratio is at most ``error`` (relative), or after ``max_timed_s``.

    With whole processes as turns (`Cell.start`), a launch makes pairs for ``starts_s``, at most
    ``most_starts``. The protocol ``many-calls`` makes ``calls`` calls of each side, or as many as
    take ``calls_limit_s``.
    """

    warm_up_limit_s: Seconds = 6.0
    settle_s: Seconds = 0.02
    turn_s: Seconds = 0.04
    min_pairs: Count = 15
    min_timed_s: Seconds = 4.0
    max_timed_s: Seconds = 12.0
    error: Annotated[float, Meta(ge=0)] = 0.01
    starts_s: Seconds = 20.0
    most_starts: Annotated[int, Meta(ge=1, le=1000)] = 3
    calls: Annotated[int, Meta(ge=1, le=10**9)] = 10_000
    calls_limit_s: Seconds = 30.0


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """The task of one measuring process: its first message.

    ``cache_dir`` is the folder of Inductor's and Triton's caches. The caller empties the folder for
    a cold launch and gives the same folder to the warm launches. ``observe``: whether a cold launch
    also records what the compiler did, which takes longer than the timing. ``sides``: which calls
    this process makes. ``heap``: the state that its heap has to have.
    """

    cell: Cell
    kind: Literal["cold", "warm"]
    cache_dir: Text
    plan: Plan = Plan()
    observe: bool = True
    sides: tuple[Side, ...] = ("eager", "mode")
    heap: Heap = "default"
    schema: Schema = SCHEMA
