"""The driver: which machine gets which series, and what a lost machine means.

A series that no machine has begun goes to any machine that is free: Ray chooses. Then it has a
home, the machine that measures it. Further pieces go there and nowhere else, with the journal of
the series. When its home is lost, the series waits. After the stated time it begins anew on another
machine, and the launches of the lost one do not count.

The driver has no state that is not on disk: results, diary, and journals.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import msgspec

from ..engine import journal, rounds, series
from ..engine.progress import launch_line, rounded_duration
from ..engine.series import Series
from ..errors import SuiteError, cannot_write
from ..host.files import append_line
from . import inspection, messages
from .messages import START_S, ClusterLost, Described, Order, Piece, Said, Transport
from .plan import Plan
from .store import Diary, Store

# How often the driver looks which machines there are.
LOOK_EVERY_S = 5.0
# How long the driver listens before it looks for free machines again.
HEAR_S = 1.0
# How often a refused machine is inspected again: a load may have ended.
INSPECT_AGAIN_S = 300.0
# Pieces of a series in a row that end with a fault and without a launch.
MOST_FAULTS = 3
# After this silence beyond what a piece announced, Ray's worker itself hangs.
HANG_S = 300.0
# What cancelled pieces get to end their processes.
CANCEL_S = 40.0


class Ended(NamedTuple):
    """How a run ended: series stored now, and those that were given up, with the reason."""

    stored: int
    failed: dict[str, str]


@dataclass
class Driver:
    """Measures what is left of a plan with the machines of a cluster.

    - ``python``: of the releases' environments, such as 3.11.
    - ``mine``: the description of the driver itself.
    - ``done``: the series that the results have.
    - ``wait_s``: how long a lost machine is waited for.
    - ``show`` prints a line.
    """

    transport: Transport
    plan: Plan
    store: Store
    diary: Diary
    _: KW_ONLY
    python: str
    mine: Described
    done: Collection[str]
    wait_s: float
    show: Callable[[str], None]

    def __post_init__(self) -> None:
        """Ready to `run`."""
        self._number = {task.id: number for number, task in enumerate(self.plan.tasks, 1)}
        # What is neither stored nor given up, in the order of the plan.
        self._open = {task.id: task for task in self.plan.tasks if task.id not in self.done}
        self._alive: dict[str, messages.Node] = {}
        self._admitted: set[str] = set()
        self._refused: dict[str, float] = {}
        self._pieces: dict[int, Piece] = {}
        self._faults: dict[str, int] = defaultdict(int)
        self._failed: dict[str, str] = {}
        self._stored = 0
        self._said: set[str] = set()
        self._nobody_since = time.monotonic()

    def run(self) -> Ended:
        """Measure until every series is stored or given up.

        Raises SuiteError when there is no machine any more; what was measured is stored.
        KeyboardInterrupt ends all processes on all machines first.
        """
        look_at = 0.0
        try:
            for identity in self.done:  # a driver that was killed may have left it
                journal.discard(self.diary.journal(identity))
            while self._open:
                if time.monotonic() >= look_at:
                    self._look()
                    look_at = time.monotonic() + LOOK_EVERY_S
                self._give()
                self._hear()
                self._end_hanging()
        except ClusterLost:
            self._pieces.clear()  # Ray would wait for the head
            raise
        except OSError as error:
            raise cannot_write(error, "results", f"correct this, then {rounds.AGAIN}") from error
        finally:
            for number in self._pieces:
                self.transport.cancel(number)
            self._wait_for_end()
            for problem in self.store.seal():
                self.show(f"not sealed: {problem}")
        return Ended(self._stored, self._failed)

    def _look(self) -> None:
        """Which machines are there, which have gone, and which have been away for too long."""
        found, faults = self.transport.machines()
        for fault in faults:
            self._say_once(f"refused: {fault}")
        for name, node in list(self._alive.items()):
            if name not in found or found[name].id != node.id:
                self._gone(name)
        for name in sorted(found.keys() - self._alive.keys()):
            self._alive[name] = found[name]
            self._inspect(name)
        for name, since in list(self._refused.items()):
            if time.monotonic() - since > INSPECT_AGAIN_S:
                self._inspect(name)
        # A machine that was never seen in this run is missed from its beginning.
        for name in sorted(self._homes() - self._alive.keys()):
            self._lose(name)
        for name, since in list(self.diary.lost.items()):
            away = name not in self._alive or name in self._refused
            if away and time.time() - since > self.wait_s:
                self._begin_anew(name)
        self._need_machines()

    def _inspect(self, name: str) -> None:
        self._refused.pop(name, None)
        self._start(Order(name, self.python, self.plan.releases), [name])

    def _described(self, described: Described) -> None:
        """A machine was inspected: it takes part, or is refused."""
        name = described.machine
        results = self.store.results
        if refusal := inspection.refusal(described, self.mine, self.plan.hardware, results):
            self._refuse(name, refusal)
            return
        self._admitted.add(name)
        if name in self.diary.lost:
            self.diary.note("back", "", name)
            self.show(f"{name} is back")
        for fault in described.faults:
            self._say_once(f"{name}: {fault.level.value}: {fault.name}: {fault.says}")

    def _refuse(self, name: str, reason: str) -> None:
        """The machine takes no part until it is inspected again; its series wait for it."""
        self._refused[name] = time.monotonic()
        self._say_once(f"refused: {name}: {reason}")
        self._lose(name)

    def _gone(self, name: str) -> None:
        """The machine left the cluster."""
        del self._alive[name]
        self._admitted.discard(name)
        self._refused.pop(name, None)
        self._lose(name)
        for number, piece in list(self._pieces.items()):
            # A piece that can only run there would wait for ever.
            if piece.machine == name or not self._alive.keys() & piece.machines:
                self._abandon(number)

    def _homes(self) -> set[str]:
        """The machines that have begun a series which is open."""
        return {home for identity, home in self.diary.home.items() if identity in self._open}

    def _lose(self, name: str) -> None:
        """If the machine is a home, its series begin to wait for it."""
        if name in self._homes() and name not in self.diary.lost:
            self.diary.note("lost", "", name)
            self.show(
                f"{name} is lost; its series wait {self.wait_s / 60:.0f} minutes for it, then "
                "begin anew on another machine"
            )

    def _begin_anew(self, name: str) -> None:
        for identity, home in list(self.diary.home.items()):
            if home == name and identity in self._open:
                self.diary.note("anew", identity, name)
                self._tell(identity, f"begins anew, because {name} did not come back")

    def _need_machines(self) -> None:
        """Raise SuiteError where nobody measures and nobody will."""
        if self._admitted or self._pieces:
            self._nobody_since = time.monotonic()
        elif self._alive and not self._homes() & (self.diary.lost.keys() - self._alive.keys()):
            raise SuiteError("every machine is refused; the reasons are above")
        elif time.monotonic() - self._nobody_since > self.wait_s:
            raise SuiteError(
                "there is no machine in the cluster; what was measured is kept, and the same "
                "command goes on"
            )

    def _give(self) -> None:
        """Hand out series: those that have a home there, others to whoever is free."""
        measuring = [piece for piece in self._pieces.values() if piece.order.series]
        busy = {piece.machine for piece in measuring}
        unplaced = sum(not piece.machine for piece in measuring)
        for identity, home in list(self.diary.home.items()):
            if home in self._admitted - busy and identity in self._open:
                busy.add(home)
                self._measure(identity, home, [home])
        # Ray gets one piece for each free slot. More would wait in Ray, where a machine that is
        # lost or refused later could not be taken back.
        free = sorted(self._admitted - busy)
        fresh = itertools.filterfalse(self._is_begun, self._open)
        for identity in itertools.islice(fresh, max(0, len(free) - unplaced)):
            self._measure(identity, "", free)

    def _is_begun(self, identity: str) -> bool:
        """Whether a series has a home, or is handed out."""
        given = (piece.order.id for piece in self._pieces.values())
        return identity in self.diary.home or identity in given

    def _measure(self, identity: str, machine: str, machines: Sequence[str]) -> None:
        """Hand out a series: to ``machine``, or to any of the machines where that is empty."""
        wanted, folder = self._open[identity].series, self.diary.journal(identity)
        if not machine:
            journal.discard(folder)  # launches of another machine do not count
        lines = journal.lines_of(wanted, folder)
        begun = tuple(self.diary.home)
        order = Order(machine, self.python, (), identity, wanted, lines, begun)
        self._start(order, machines)

    def _start(self, order: Order, machines: Sequence[str]) -> None:
        number = self.transport.start(order, machines)
        machine = machines[0] if len(machines) == 1 else ""
        limit_s = time.monotonic() + START_S + HANG_S
        self._pieces[number] = Piece(order, machines, machine, limit_s)

    def _abandon(self, number: int) -> None:
        """Let go of a piece. Its series waits again, unless it is stored or given up."""
        self.transport.cancel(number)
        self.transport.drop(number)
        del self._pieces[number]

    def _hear(self) -> None:
        if not self._pieces:
            time.sleep(HEAR_S)
            return
        for event in self.transport.hear(HEAR_S):
            piece = self._pieces.get(event.piece)
            if piece is None:
                continue
            if event.said is None:
                self._ended(piece, event.fault)
                del self._pieces[event.piece]
            else:
                piece.machine, piece.begun = event.machine, True
                piece.limit_s = time.monotonic() + event.said.within_s + HANG_S
                self._say(piece, event.said)

    def _say(self, piece: Piece, said: Said) -> None:
        """One message of a piece."""
        identity, wanted, name = piece.order.id, piece.order.series, piece.machine
        if isinstance(said, Described):
            piece.done = True
            self._described(said)
        elif isinstance(said, messages.Failed):
            piece.reason = said.reason
        elif wanted is None:
            return
        elif isinstance(said, messages.Began):
            if self.diary.home.get(identity) != name or identity in self.diary.failed:
                self.diary.note("given", identity, name)
            known = piece.order.launches
            goes_on = f", goes on after launch {known}" if known else ""
            self._tell(identity, f"{wanted.cell} on {name}{goes_on}")
        elif isinstance(said, messages.Told):
            self._tell(identity, f"{name}: {said.text}")
        elif isinstance(said, messages.Kept):
            self._keep(identity, said)
            if launch := said.line.launch:
                piece.launches += 1
                text = f"round {launch.round}, {said.line.release}: {launch_line(launch)}"
                self._tell(identity, f"{name}: {text}")
        elif isinstance(said, messages.Finished):
            self._finished(piece, wanted, said)

    def _keep(self, identity: str, kept: messages.Kept) -> None:
        """Write a line of the journal. Raises OSError."""
        file = self.diary.journal(identity) / journal.FILE
        append_line(file, msgspec.json.encode(kept.line))

    def _finished(self, piece: Piece, wanted: Series, said: messages.Finished) -> None:
        """All of a series is here: store it."""
        identity = piece.order.id
        folder = self.diary.journal(identity)
        measured = rounds.results(wanted, journal.of_series(wanted, folder))
        if measured.keys() != set(wanted.releases):
            piece.reason = "not all of its releases came back"
            return
        try:
            self.store.keep(piece.machine, said.fields, measured)
        except SuiteError as error:
            piece.reason = str(error)
            return
        piece.done = True
        self._stored += 1
        del self._open[identity]
        self.diary.note("stored", identity, piece.machine)
        journal.discard(folder)
        left_s = sum(one.seconds for one in self._open.values()) / max(1, len(self._admitted))
        still = f"; {len(self._open)} left, {rounded_duration(left_s)}" if self._open else ""
        text = f"{series.summary(measured)}, from {piece.machine}{still}"
        self._tell(identity, text)

    def _ended(self, piece: Piece, fault: str) -> None:
        """A piece has ended; without its result it is tried again, where its journal is."""
        if piece.done:
            return
        reason = piece.reason or fault or "it ended without a result"
        if piece.order.series is None:
            if piece.machine in self._alive and piece.machine not in self._admitted:
                self._refuse(piece.machine, f"it cannot be inspected: {reason}")
            return
        identity = piece.order.id
        self._faults[identity] = 0 if piece.launches else self._faults[identity] + 1
        where = f" on {piece.machine}" if piece.machine else ""
        if self._faults[identity] < MOST_FAULTS:
            self._tell(identity, f"stopped{where}: {reason}")
            return
        self._failed[identity] = reason
        del self._open[identity]
        if not piece.order.launches:
            self.diary.note("anew", identity, piece.machine)  # any machine may try it next time
        self.diary.note("failed", identity, piece.machine, reason)
        self._tell(identity, f"given up{where} after {MOST_FAULTS} attempts: {reason}")

    def _end_hanging(self) -> None:
        """End pieces that are silent for longer than their machine has announced."""
        for number, piece in list(self._pieces.items()):
            if time.monotonic() < piece.limit_s:
                continue
            if piece.order.series and not piece.begun:
                # It waits in Ray, and does not hang. The next one may go to other machines.
                self._say_once(
                    f"{', '.join(piece.machines)}: Ray has no free slot there; another fleet run "
                    "measures, or its worker hangs"
                )
                self._abandon(number)
            elif piece.forced:
                self._ended(piece, "it hangs, and Ray cannot end it")
                self._abandon(number)
            else:
                piece.forced = True
                piece.reason = "it hung, and was ended"
                piece.limit_s = time.monotonic() + HANG_S
                self.transport.cancel(number, force=True)

    def _wait_for_end(self) -> None:
        until = time.monotonic() + CANCEL_S
        while self._pieces and time.monotonic() < until:
            for event in self.transport.hear(HEAR_S):
                if event.said is None:
                    self._pieces.pop(event.piece, None)
                elif isinstance(event.said, messages.Kept) and event.piece in self._pieces:
                    with contextlib.suppress(OSError):  # said already
                        self._keep(self._pieces[event.piece].order.id, event.said)
        self._pieces.clear()

    def _tell(self, identity: str, text: str) -> None:
        self.show(f"series {self._number[identity]} of {len(self.plan.tasks)}: {text}")

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.show(text)
