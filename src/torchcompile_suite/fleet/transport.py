"""Ray as transport: which machines there are, and pieces of work that say lines.

Nothing else imports Ray. `head` says what a node of Ray needs to be a machine of the fleet.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import ray
from ray import exceptions
from ray._private.state import available_resources_per_node  # no public way without a dashboard

from ..errors import SuiteError
from ..host.orphans import die_with_parent
from . import head, messages, plain
from .head import HARDWARE, MACHINE, SLOT, SYSTEM
from .messages import Event, Node, Order

# Says what `plain.lines` says; another function stands for it in rehearsals.
Lines = Callable[[Order], Iterator[bytes]]


@ray.remote(num_cpus=0, max_calls=1, max_retries=0)  # type: ignore[untyped-decorator]
def _work(order: bytes, lines: Lines) -> Iterator[tuple[str, bytes]]:
    """Does an order on the machine where Ray runs it."""
    # Ray's own watch takes only process 1 for the one that adopts orphans, so a worker can survive
    # its killed node for as long as its work takes.
    die_with_parent()
    name = str(ray.get_runtime_context().get_node_labels()[MACHINE])
    decoded = msgspec.structs.replace(messages.decode_order(order), machine=name)
    with contextlib.closing(lines(decoded)) as said:  # type: ignore[type-var]
        for line in said:
            yield name, line


class Cluster:
    """The machines of a Ray cluster, and the pieces of work on them."""

    def __init__(self, lines: Lines = plain.lines) -> None:
        """`connect` or `start_here` comes first."""
        self._lines = lines
        self._pieces: dict[int, Any] = {}
        self._numbers = itertools.count(1)

    def connect(self, address: str) -> None:
        """Join a cluster as its driver. Raises SuiteError where that is impossible."""
        self._init(f"cannot join the cluster at {address}", address=address)

    def start_here(self, machine: str, hardware: str) -> None:
        """Start Ray on this machine alone, with one slot. Raises SuiteError."""
        # Ray wants a token for such a cluster. It would write one into the home folder, where every
        # user of the host can read it.
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        self._init(
            "Ray does not start here",
            address="local",
            num_cpus=0,
            num_gpus=0,
            resources={SLOT: 1},
            labels={MACHINE: machine, HARDWARE: hardware},
            include_dashboard=False,
            _system_config=SYSTEM,
        )

    def _init(self, fault: str, **options: Any) -> None:
        os.environ.pop("RAY_ADDRESS", None)  # it may be that of another cluster
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, RuntimeError, ValueError, exceptions.RayError) as error:
            raise SuiteError(f"{fault}: {' '.join(str(error).split())[:600]}") from None

    def close(self) -> None:
        """Leave the cluster. A Ray that was started here ends."""
        ray.shutdown()

    def address(self) -> str:
        """Host and port of the head."""
        return str(ray.get_runtime_context().gcs_address)

    def machines(self) -> tuple[dict[str, Node], list[str]]:
        """The machines that are alive, by name, and the faults of other nodes with a slot.

        Raises ClusterLost.
        """
        head.need(self.address())
        found: dict[str, Node] = {}
        faults = []
        twice = set()
        for node in ray.nodes():
            if not node["Alive"] or not node["Resources"].get(SLOT):
                continue
            host = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
            labels: Mapping[str, str] = node["Labels"]
            name = labels.get(MACHINE, "")
            if not name or not labels.get(HARDWARE):
                faults.append(
                    f"{host} has the resource {SLOT}, but not the labels {MACHINE} and {HARDWARE}: "
                    "start its Ray with what `torchcompile-suite fleet node` prints"
                )
            elif node["Resources"][SLOT] != 1:
                faults.append(f"{host} has {node['Resources'][SLOT]:g} slots instead of one")
            elif name in found:
                twice.add(name)
            else:
                found[name] = Node(labels[HARDWARE], node["NodeID"])
        for name in sorted(twice):
            del found[name]
            faults.append(f"two nodes call themselves {name}: give one of them another name")
        return found, faults

    def free(self) -> set[str]:
        """The machines whose slot is free. Raises ClusterLost."""
        head.need(self.address())
        names = {node["NodeID"]: node["Labels"].get(MACHINE, "") for node in ray.nodes()}
        available = available_resources_per_node()
        return {names.get(one, "") for one, left in available.items() if left.get(SLOT)} - {""}

    def start(self, order: Order, machines: Sequence[str]) -> int:
        """Hand an order to one of the machines. Returns the number of the piece.

        An order that does not measure needs no slot: it runs beside what is measured there.
        """
        options = {"resources": {SLOT: 1}} if order.series else {}
        selector = machines[0] if len(machines) == 1 else f"in({','.join(machines)})"
        generator = _work.options(
            num_returns="streaming", label_selector={MACHINE: selector}, **options
        ).remote(messages.encode(order), self._lines)
        number = next(self._numbers)
        self._pieces[number] = generator
        return number

    def hear(self, timeout_s: float) -> list[Event]:
        """What pieces have said since the last call; waits for at most ``timeout_s``."""
        running = list(self._pieces.values())
        ready, _ = ray.wait(running, timeout=timeout_s, fetch_local=False)
        if ready:
            ready, _ = ray.wait(running, num_returns=len(running), timeout=0, fetch_local=False)
        return [self._heard(number) for number, one in list(self._pieces.items()) if one in ready]

    def _heard(self, number: int) -> Event:
        try:
            name, line = ray.get(next(self._pieces[number]))
            return Event(number, name, messages.decode_said(line))
        except StopIteration:
            fault = ""
        except exceptions.RayError as error:
            fault = _fault(error)
        except msgspec.DecodeError:
            fault = "it says what this suite does not know: update its clone, or the driver's"
            self.cancel(number)
        del self._pieces[number]
        return Event(number, fault=fault)

    def cancel(self, piece: int, *, force: bool = False) -> None:
        """End a piece; with ``force`` by the end of Ray's worker process."""
        if piece in self._pieces:
            with contextlib.suppress(exceptions.RayError, ValueError):
                ray.cancel(self._pieces[piece], force=force)

    def drop(self, piece: int) -> None:
        """Hear nothing more of a piece."""
        self._pieces.pop(piece, None)


# The causes that need other words than Ray's.
_FAULTS = {
    exceptions.TaskCancelledError: "it was cancelled",
    exceptions.WorkerCrashedError: "its Ray worker was killed, or its machine left the cluster",
    exceptions.NodeDiedError: "its machine left the cluster",
    exceptions.LocalRayletDiedError: "the Ray node of the driver ended",
    exceptions.OutOfMemoryError: "memory ran out: Ray's memory monitor ended its worker",
}


def _fault(error: exceptions.RayError) -> str:
    """Why a piece ended, in one line."""
    known = next((text for kind, text in _FAULTS.items() if isinstance(error, kind)), "")
    return known or f"{type(error).__name__}: {' '.join(str(error).split())}"[:600]
