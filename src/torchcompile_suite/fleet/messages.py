"""What the driver and a machine say to each other: JSON, one line each way at a time.

`Transport` is what carries it: `transport.Cluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ..doctor import Check
from ..engine.journal import Line
from ..engine.series import Series
from ..errors import SuiteError
from ..fields import Text

# Seconds that a machine may say nothing after its process was started.
START_S = 300.0
# Seconds for the installation of one release. ASV's limit in asv.commits.conf.json is the same.
INSTALL_S = 3600.0
# Seconds beyond the limit of a launch: torch is imported, and the compilers are ended.
MARGIN_S = 300.0

# The name of a series, and of its folder.
Id = Annotated[str, Meta(pattern=r"^([0-9a-f]{16})?\Z")]


class ClusterLost(SuiteError):
    """The cluster does not answer any more. The message is one line."""


class Order(Struct, frozen=True):
    """What a machine has to do: measure a series; without one, tell what it is (`Described`).

    - ``machine``: its name in results/. ``python``: of the releases' environments, such as 3.11.
    - ``releases``: what has to be installable there.
    - ``series``: what to measure, with its ``id``. ``lines``: of its journal, if it has begun.
    - ``begun``: series that go on later, so their compiled code stays.
    """

    machine: str
    python: str = ""
    releases: tuple[str, ...] = ()
    id: Id = ""
    series: Series | None = None
    lines: list[Line] = []
    begun: tuple[Id, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a series without a name."""
        if self.series is not None and not self.id:
            raise ValueError("a series has a name")

    @property
    def launches(self) -> int:
        """The number of launches that the series has."""
        return sum(line.launch is not None for line in self.lines)


class Described(Struct, frozen=True, tag="described"):
    """What a machine is.

    - ``hardware``: its class (`host.machine.class_of`). ``fields``: those of its machine.json.
    - ``suite``: digest of the suite's source. ``locks``: digest of each release's lock; a release
      that the machine's catalogue lacks is missing. ``ray``: its version.
    - ``faults``: what the doctor found.
    """

    machine: str
    hardware: str
    fields: dict[str, str | int]
    suite: str
    locks: dict[str, str]
    ray: str
    faults: list[Check]
    within_s: float = START_S


class Began(Struct, frozen=True, tag="began"):
    """The machine has the series now."""

    within_s: float = START_S


class Told(Struct, frozen=True, tag="told"):
    """A line for the user. ``within_s``: seconds until the next message, at most."""

    text: Text
    within_s: float = START_S


class Kept(Struct, frozen=True, tag="kept"):
    """A line for the journal of the series, such as a launch that has ended.

    It stays below the 100 KB up to which Ray hands a result to the driver at once. A larger one
    would stay on the machine and be lost with it.
    """

    line: Line
    within_s: float


class Finished(Struct, frozen=True, tag="finished"):
    """The series is complete. ``fields``: those of the machine's machine.json."""

    fields: dict[str, str | int]
    within_s: float = START_S


class Failed(Struct, frozen=True, tag="failed"):
    """The machine could not do it. ``reason`` is one line."""

    reason: Text
    within_s: float = START_S


Said: TypeAlias = Described | Began | Told | Kept | Finished | Failed


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


# A message without a newline, and back; these raise msgspec.DecodeError.
encode: Callable[[Order | Said], bytes] = msgspec.json.encode
decode_order: Callable[[bytes], Order] = msgspec.json.Decoder(Order).decode
decode_said: Callable[[bytes], Said] = msgspec.json.Decoder(Said).decode
