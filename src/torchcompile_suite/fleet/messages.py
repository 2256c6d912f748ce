"""What the driver and a machine say to each other: JSON, one line each way at a time.

`Transport` is what carries it: `transport.Cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ..doctor import Level
from ..engine.series import Series
from ..errors import SuiteError
from ..fields import Text

# Seconds that a machine may say nothing after its process was started.
START_S = 300.0
# Seconds for the installation of one release. ASV's limit in asv.commits.conf.json is the same.
INSTALL_S = 3600.0
# Seconds beyond the limit of a launch: torch is imported, and the compilers are ended.
MARGIN_S = 300.0

Id = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]


class ClusterLost(SuiteError):
    """The cluster does not answer any more. The message is one line."""


class Order(Struct, frozen=True):
    """What a machine has to do: first forget, then inspect itself, then measure.

    - ``machine``: its name in results/.
    - ``forget``: series whose results are stored. Their journals are removed.
    - ``inspect``: tell what it is (`Described`). ``releases``: what has to be installable.
    - ``series``: what to measure, with its ``id``. ``python``, ``environment``: the Python of the
      releases' environments, such as 3.11, and ASV's name of them. ``commits``: the ledger's commit
      of each release, 8 digits.
    """

    machine: str
    forget: tuple[Id, ...] = ()
    inspect: bool = False
    releases: tuple[str, ...] = ()
    id: str = ""
    series: Series | None = None
    python: str = ""
    environment: str = ""
    commits: dict[str, str] = {}


class Fault(Struct, frozen=True):
    """A check that is not ok; the fields of `doctor.Check`."""

    name: Text
    level: Level
    says: Text
    remedy: Text = ""


class Described(Struct, frozen=True, tag="described"):
    """What a machine is.

    - ``hardware``: its class (`host.machine.class_of`). ``fields``: those of its machine.json.
    - ``suite``: digest of the suite's source. ``locks``: digest of each release's lock; a release
      that the machine's catalogue lacks is missing. ``ray``, ``python``: versions.
    - ``journals``: number of launches of each series that it has begun.
    - ``faults``: what the doctor found.
    """

    machine: str
    hardware: str
    fields: dict[str, str | int]
    suite: str
    locks: dict[str, str]
    ray: str
    python: str
    journals: dict[str, int]
    faults: list[Fault]
    within_s: float = START_S


class Began(Struct, frozen=True, tag="began"):
    """The machine has the series now. ``launches``: those of earlier pieces."""

    launches: int
    within_s: float = START_S


class Told(Struct, frozen=True, tag="told"):
    """A line for the user. ``within_s``: seconds until the next message, at most."""

    text: Text
    within_s: float = START_S


class Launched(Struct, frozen=True, tag="launched"):
    """A launch has ended, and is in the journal."""

    release: str
    round: int
    text: Text
    within_s: float


class Measured(Struct, frozen=True, tag="measured"):
    """The segment of one release of a series that is complete: its bytes, and its path in the
    machine's folder.

    A message for each release stays below the 100 KB up to which Ray hands a result to the driver
    at once. A larger one would stay on the machine and be lost with it.
    """

    release: str
    path: str
    data: bytes
    within_s: float = START_S


class Finished(Struct, frozen=True, tag="finished"):
    """All segments of the series are said. ``fields``: those of the machine's machine.json."""

    fields: dict[str, str | int]
    summary: Text
    within_s: float = START_S


class Failed(Struct, frozen=True, tag="failed"):
    """The machine could not do it. ``reason`` is one line."""

    reason: Text
    within_s: float = START_S


Said: TypeAlias = Described | Began | Told | Launched | Measured | Finished | Failed


class Node(NamedTuple):
    """A machine in the cluster: its class, as a label. ``id`` changes when it joins again."""

    hardware: str
    id: str


class Event(NamedTuple):
    """What the driver hears of a piece: what it says, or that it has ended; then ``said`` is None.

    ``machine``: where it runs. ``fault``: why it ended, in one line; empty for its own end.
    """

    piece: int
    machine: str = ""
    said: Said | None = None
    fault: str = ""


@dataclass
class Piece:
    """An order that was handed to Ray, and what the driver has heard of it.

    - ``machines``: one of them gets it. ``machine``: which; empty until one of several says so.
    - ``limit_s``: until then, by the clock of `time.monotonic`, it has to say something.
    - ``begun``: whether it has said anything. ``launches``: the number of those that it has said.
    - ``done``: whether all that was wanted is here. ``reason``: why not, as far as it has said so.
    - ``forced``: whether Ray was asked to kill its worker.
    """

    order: Order
    machines: Sequence[str]
    machine: str
    limit_s: float
    begun: bool = False
    launches: int = 0
    measured: list[Measured] = field(default_factory=list)
    done: bool = False
    reason: str = ""
    forced: bool = False


class Transport(Protocol):
    """The machines of a cluster, and the pieces of work on them: see `transport.Cluster`."""

    def machines(self) -> tuple[Mapping[str, Node], list[str]]:
        """The machines that are alive, and the faults of other nodes."""

    def start(self, order: Order, machines: Sequence[str]) -> int:
        """Hand an order to one of the machines. One that measures waits for a free slot."""

    def hear(self, timeout_s: float) -> Sequence[Event]:
        """What pieces have said."""

    def cancel(self, piece: int, *, force: bool = False) -> None:
        """End a piece."""

    def drop(self, piece: int) -> None:
        """Hear nothing more of a piece."""


def encode(message: Order | Said) -> bytes:
    """The message without a newline."""
    return msgspec.json.encode(message)


def decode_order(text: bytes) -> Order:
    """Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=Order)


def decode_said(text: bytes) -> Said:
    """Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=Said)  # type: ignore[no-any-return]
