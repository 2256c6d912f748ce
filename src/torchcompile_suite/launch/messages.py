"""What processes of this package and the ones that drive them say to each other.

`accept` takes a process's connection, and `folder` makes it a place for files.

The driver starts one or two processes for a launch and sends each a `Request`. Then, in this
order: a process says `Imported`; the driver says `Go`; the process warms up and says `Ready`; the
driver asks for turns, one `Turn` at a time, and gets a `Timed` for each; the driver says `Finish`,
and the process says `Ended`. A process that fails says `Ended` at once.

A process that is a turn by itself (`service`) says `FirstResult`, hears `Finish`, and says `Ended`.
A measuring process may say an `Event` at any time.

A process that generates code gets `Order` after `Order`, and answers each with a `Launch`. Nothing
here imports torch.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from .. import workloads
from ..cell import Cell, Start
from ..fields import Count, Seconds
from ..host.orphans import die_with_parent
from ..measurement import Launch
from ..request import Side
from .progress import Event

# Names the folder of a process.
FOLDER_VARIABLE = "TORCHCOMPILE_SUITE_FOLDER"


def accept() -> Connection:
    """Take the connection that the command line names: ``--connection FD``.

    From now on this process ends when its parent ends, and a user's file finds no arguments.
    """
    connection = Connection(int(sys.argv[2]))
    del sys.argv[1:]
    die_with_parent()
    return connection


def folder(name: str) -> Path:
    """A new folder of that name for files of this process. The parent removes it: a process that is
    killed cannot.
    """
    made = Path(os.environ[FOLDER_VARIABLE], name)
    made.mkdir()
    return made


def import_quietly(names: Iterable[str]) -> None:
    """Import modules. Errors are ignored: a launch meets the same error and reports it."""
    for name in names:
        with contextlib.suppress(Exception):
            workloads.library(name)


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


Said: TypeAlias = Event | Imported | Ready | Timed | FirstResult | Ended
Asked: TypeAlias = Go | Turn | Finish

encode = msgspec.json.encode


# A message of a measuring process, and one of the driver.
decode_said: Callable[[bytes], Said] = msgspec.json.Decoder(Said).decode
decode_asked: Callable[[bytes], Asked] = msgspec.json.Decoder(Asked).decode


# What a service is told, and the files that are prepared for it.
SERVICE = "torchcompile_suite.launch.service"

# In the folder of a cell. `PREPARED` is written last.
PREPARED = "prepared.json"
# The number of launches that were made from the folder.
LAUNCHES = "launches"
# The cache folder of the process that prepares; a service with ``disk-cache`` has the same one.
CACHE = "cache"
WEIGHTS, INPUTS, EXPECTED = "weights.pt", "inputs.pt", "expected.pt"
# A folder: what is loaded by a service.
ARTEFACTS = "artefacts"


class Prepared(Struct, frozen=True):
    """What was prepared.

    ``threads``: those that torch uses. ``seed``: with which the model was built. The rest is as in
    `cell.Started`.
    """

    threads: Count
    seed: int
    loader: str = ""
    artefact_bytes: Count | None = None


class Service(Struct, frozen=True):
    """The order of a service, which reads it as plain JSON.

    - ``start``: empty for eager.
    - ``folder``: what was prepared. ``loader``: the function that loads from it.
    - ``kind``: of the launch.
    """

    workload: str
    batch_size: int
    mode: str
    device: str
    start: Start
    seed: int
    folder: str
    loader: str
    kind: Literal["cold", "warm"]


# What the process that generates code is asked for.
GENERATOR = "torchcompile_suite.launch.generate"
# Names the target of the process: one of `targets`.
TARGET_VARIABLE = "TORCHCOMPILE_SUITE_GPU"


class Order(Struct, frozen=True):
    """Generate code for the cell.

    - ``assemble``: also registers, spills, shared memory and occupancy of each Triton kernel: half
      a second for each.
    - ``folder``: an existing folder that gets the code; empty for none.
    """

    cell: Cell
    assemble: bool = False
    folder: str = ""
