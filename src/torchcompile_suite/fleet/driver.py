"""The driver: which machine gets which series, and what a lost machine means.

A series that no machine has begun goes to any machine that is free: Ray chooses. Then it has a
home, the machine with its journal. Further pieces go there and nowhere else. When its home is lost,
the series waits. After the stated time it begins anew on another machine, and the launches on the
lost one do not count.

The driver has no state that is not on disk: results, diary, and the journals on the machines.
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ..errors import SuiteError
from ..measuring.progress import rounded_duration
from . import inspection, left
from .diary import Diary, Line, Plan
from .left import Newest, Task
from .messages import (
    START_S,
    Began,
    ClusterLost,
    Described,
    Event,
    Failed,
    Finished,
    Launched,
    Measured,
    Node,
    Order,
    Said,
    Told,
)
from .store import Store

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


class Transport(Protocol):
    """See `transport.Cluster`."""

    def machines(self) -> tuple[Mapping[str, Node], list[str]]:
        """The machines that are alive, and the faults of other nodes."""

    def start(self, order: Order, machines: Sequence[str], *, slot: bool = True) -> int:
        """Hand an order to one of the machines."""

    def hear(self, timeout_s: float) -> Sequence[Event]:
        """What pieces have said."""

    def cancel(self, piece: int, *, force: bool = False) -> None:
        """End a piece."""

    def drop(self, piece: int) -> None:
        """Hear nothing more of a piece."""


class _Piece:
    """An order that was handed to Ray. ``machine`` is empty until it says something."""

    def __init__(self, task: Task | None, machines: Sequence[str], slot: bool) -> None:
        self.task = task
        self.machines = machines
        self.slot = slot
        self.machine = machines[0] if len(machines) == 1 else ""
        self.begun = False
        self.measured: list[Measured] = []
        self.launches = 0
        self.reason = ""
        self.done = False
        self.forced = False
        self.limit_s = time.monotonic() + START_S + HANG_S


class Ended(NamedTuple):
    """How a run ended: series stored now, and those that were given up, with the reason."""

    stored: int
    failed: dict[str, str]


class Driver:
    """Measures what is left of a plan with the machines of a cluster."""

    def __init__(
        self,
        transport: Transport,
        plan: Plan,
        store: Store,
        diary: Diary,
        *,
        python: str,
        commits: Mapping[str, str],
        mine: Described,
        done: Iterable[str],
        wait_s: float,
        show: Callable[[str], None],
    ) -> None:
        """Ready to `run`.

        ``python``: of the releases' environments, such as 3.11. ``mine``: the description of the
        driver itself. ``done``: the series that the results have. ``wait_s``: how long a lost
        machine is waited for. ``show`` prints a line.
        """
        self._transport = transport
        self._plan = plan
        self._store = store
        self._diary = diary
        self._python = python
        self._commits = commits
        self._mine = mine
        self._done = set(done)
        self._wait_s = wait_s
        self._show = show
        self._number = {task.id: number for number, task in enumerate(plan.tasks, 1)}
        # What is neither stored nor given up, in the order of the plan.
        self._open = {task.id: task for task in plan.tasks if task.id not in self._done}
        self._open_s = sum(task.seconds for task in self._open.values())
        # The numbers of the series that nobody has begun; some have a home or are closed by now.
        self._fresh = sorted(self._number[identity] for identity in self._open)
        self._given: set[str] = set()
        self._releases = tuple(
            dict.fromkeys(release for task in plan.tasks for release in task.series.releases)
        )
        self._alive: dict[str, Node] = {}
        self._admitted: set[str] = set()
        self._refused: dict[str, float] = {}
        self._pieces: dict[int, _Piece] = {}
        self._faults: dict[str, int] = defaultdict(int)
        self._failed: dict[str, str] = {}
        # The machines with a journal of each open series, and what each machine may remove.
        self._journals: dict[str, set[str]] = defaultdict(set)
        self._forget: dict[str, set[str]] = defaultdict(set)
        self._stored = 0
        self._said: set[str] = set()
        self._nobody_since = time.monotonic()
        # The inspections of the machines that are there at the beginning.
        self._first: set[int] = set()

    def run(self) -> Ended:
        """Measure until every series is stored or given up.

        Raises SuiteError when there is no machine any more; what was measured is stored.
        KeyboardInterrupt ends all processes on all machines first.
        """
        look_at = 0.0
        lost = False
        try:
            while self._open:
                if time.monotonic() >= look_at:
                    self._look()
                    if not look_at:
                        self._first = set(self._pieces)
                    look_at = time.monotonic() + LOOK_EVERY_S
                self._give()
                self._hear()
                self._end_hanging()
            self._forget_all()
        except ClusterLost:
            lost = True
            raise
        finally:
            if not lost:  # Ray would wait for the head
                self._cancel()
            for problem in self._store.seal():
                self._show(f"not sealed: {problem}")
        return Ended(self._stored, self._failed)

    # Machines.

    def _look(self) -> None:
        """Which machines are there, which have gone, and which have been away for too long."""
        found, faults = self._transport.machines()
        for fault in faults:
            self._say_once(f"refused: {fault}")
        now = time.time()
        for name, node in list(self._alive.items()):
            if name not in found or found[name].id != node.id:
                self._gone(name, now)
        for name in sorted(found.keys() - self._alive.keys()):
            self._alive[name] = found[name]
            self._inspect(name)
        for name, since in list(self._refused.items()):
            if time.monotonic() - since > INSPECT_AGAIN_S:
                self._inspect(name)
        # A machine that was never seen in this run is missed from its beginning.
        homes = {home for one, home in self._diary.home.items() if one in self._open}
        for name in sorted(homes - self._alive.keys() - self._diary.lost.keys()):
            self._lose(name, now)
        for name, since in list(self._diary.lost.items()):
            away = name not in self._alive or name in self._refused
            if away and now - since > self._wait_s:
                self._begin_anew(name)
        self._need_machines()

    def _inspect(self, name: str) -> None:
        self._refused.pop(name, None)
        order = Order(
            name,
            inspect=True,
            releases=self._releases,
            python=self._python,
            forget=self._to_forget(name),
        )
        self._start(None, order, [name], slot=False)

    def _described(self, described: Described) -> None:
        """A machine was inspected: it takes part, or is refused."""
        name = described.machine
        refusal = inspection.refusal(described, self._mine, self._releases, self._plan.hardware)
        if refusal:
            self._refuse(name, refusal)
            return
        self._admitted.add(name)
        if name in self._diary.lost:
            self._diary.add(Line(time.time(), "back", machine=name))
            self._show(f"{name} is back")
        for fault in described.faults:
            self._say_once(f"{name}: {fault.level.value}: {fault.name}: {fault.says}")
        for identity in described.journals:
            if identity in self._done:
                self._forget[name].add(identity)
            elif identity in self._open:
                # Another machine may be its home now. That one can be lost as well, so no journal
                # is removed before the series is stored.
                self._journals[identity].add(name)
                if identity not in self._diary.home and identity not in self._given:
                    self._diary.add(Line(time.time(), "given", identity, name))

    def _refuse(self, name: str, reason: str) -> None:
        """The machine takes no part until it is inspected again; its series wait for it."""
        self._refused[name] = time.monotonic()
        self._say_once(f"refused: {name}: {reason}")
        if self._at_home(name) and name not in self._diary.lost:
            self._lose(name, time.time())

    def _gone(self, name: str, now: float) -> None:
        """The machine left the cluster."""
        del self._alive[name]
        self._admitted.discard(name)
        self._refused.pop(name, None)
        if self._at_home(name):
            self._lose(name, now)
        for number, piece in list(self._pieces.items()):
            # A piece that can only run there would wait for ever.
            if piece.machine == name or not self._alive.keys() & piece.machines:
                self._abandon(number)

    def _abandon(self, number: int) -> None:
        self._transport.cancel(number)
        self._transport.drop(number)
        self._take_back(number)

    def _at_home(self, name: str) -> list[Task]:
        """The series that the machine has begun, and that are open."""
        homes = self._diary.home.items()
        return [self._open[one] for one, home in homes if home == name and one in self._open]

    def _lose(self, name: str, now: float) -> None:
        self._diary.add(Line(now, "lost", machine=name))
        self._show(
            f"{name} is lost; its series wait {self._wait_s / 60:.0f} minutes for it, then begin "
            "anew on another machine"
        )

    def _begin_anew(self, name: str) -> None:
        for task in self._at_home(name):
            self._diary.add(Line(time.time(), "anew", task.id, name))
            heapq.heappush(self._fresh, self._number[task.id])
            self._tell(task, f"begins anew, because {name} did not come back")

    def _need_machines(self) -> None:
        """Raise SuiteError where nobody measures and nobody will."""
        if self._admitted or self._pieces:
            self._nobody_since = time.monotonic()
        elif self._alive and not any(
            self._at_home(name) for name in self._diary.lost.keys() - self._alive.keys()
        ):
            raise SuiteError("every machine is refused; the reasons are above")
        elif time.monotonic() - self._nobody_since > self._wait_s:
            raise SuiteError(
                "there is no machine in the cluster; what was measured is kept, and the same "
                "command goes on"
            )

    # Pieces.

    def _give(self) -> None:
        """Hand out series: those that have a home there, others to whoever is free."""
        busy = {piece.machine for piece in self._pieces.values() if piece.slot} - {""}
        for identity, home in list(self._diary.home.items()):
            if home in self._admitted - busy and identity in self._open:
                busy.add(home)
                task = self._open[identity]
                self._start(task, self._order(task, home), [home])
        # The journals of the first machines have to be known first: a series may have a home.
        if self._first & self._pieces.keys():
            return
        # Ray gets one piece for each free slot. More would wait in Ray, where a machine that is
        # lost or refused later could not be taken back.
        free = sorted(self._admitted - busy)
        unplaced = sum(1 for piece in self._pieces.values() if piece.slot and not piece.machine)
        while unplaced < len(free) and (fresh := self._next_fresh()):
            unplaced += 1
            self._start(fresh, self._order(fresh, ""), free)

    def _next_fresh(self) -> Task | None:
        """The first series of the plan that nobody has begun."""
        while self._fresh:
            task = self._plan.tasks[heapq.heappop(self._fresh) - 1]
            at_work = task.id in self._given or task.id in self._diary.home
            if task.id in self._open and not at_work:
                return task
        return None

    def _order(self, task: Task, machine: str) -> Order:
        return Order(
            machine,
            forget=self._to_forget(machine),
            id=task.id,
            series=task.series,
            python=self._python,
            environment=self._plan.environment,
            commits={release: self._commits[release] for release in task.series.releases},
        )

    def _start(
        self, task: Task | None, order: Order, machines: Sequence[str], *, slot: bool = True
    ) -> None:
        number = self._transport.start(order, machines, slot=slot)
        self._pieces[number] = _Piece(task, machines, slot)
        if task is not None:
            self._given.add(task.id)

    def _take_back(self, number: int) -> None:
        """A piece has ended. Its series waits again, unless it is stored or given up."""
        piece = self._pieces.pop(number, None)
        if piece is not None and piece.task is not None:
            self._given.discard(piece.task.id)
            if piece.task.id in self._open and piece.task.id not in self._diary.home:
                heapq.heappush(self._fresh, self._number[piece.task.id])

    def _close(self, task: Task) -> None:
        """A series is stored or given up."""
        self._open_s -= task.seconds
        del self._open[task.id]

    def _hear(self) -> None:
        if not self._pieces:
            time.sleep(HEAR_S)
            return
        for event in self._transport.hear(HEAR_S):
            piece = self._pieces.get(event.piece)
            if piece is None:
                continue
            if event.said is None:
                self._ended(piece, event.fault)
                self._take_back(event.piece)
                continue
            piece.machine, piece.begun = event.machine, True
            piece.limit_s = time.monotonic() + event.said.within_s + HANG_S
            self._say(piece, event.said)

    def _say(self, piece: _Piece, said: Said) -> None:
        """One message of a piece."""
        task = piece.task
        if isinstance(said, Described):
            piece.done = True
            self._described(said)
        elif isinstance(said, Failed):
            piece.reason = said.reason
        elif task is None:
            return
        elif isinstance(said, Began):
            self._journals[task.id].add(piece.machine)
            if self._diary.home.get(task.id) != piece.machine:
                self._diary.add(Line(time.time(), "given", task.id, piece.machine))
            goes_on = f", goes on after {said.launches} launches" if said.launches else ""
            self._tell(task, f"{task.series.cell} on {piece.machine}{goes_on}")
        elif isinstance(said, Told):
            self._tell(task, f"{piece.machine}: {said.text}")
        elif isinstance(said, Launched):
            piece.launches += 1
            self._tell(task, f"{piece.machine}: round {said.round}, {said.release}: {said.text}")
        elif isinstance(said, Measured):
            piece.measured.append(said)
        elif isinstance(said, Finished):
            self._finished(piece, task, said)

    def _finished(self, piece: _Piece, task: Task, said: Finished) -> None:
        """All of a series is here: store it, then let the machine forget it."""
        wanted = set(task.series.releases)
        if {one.release for one in piece.measured} != wanted:
            piece.reason = "not all of its releases came back"
            return
        try:
            self._store.keep(piece.machine, said.fields, piece.measured)
        except OSError as error:
            raise SuiteError(
                f"cannot write {error.filename or 'results'}: {error.strerror}; correct this, then "
                "run the same command again: it goes on"
            ) from error
        except SuiteError as error:
            piece.reason = str(error)
            return
        piece.done = True
        self._done.add(task.id)
        self._close(task)
        self._stored += 1
        for name in self._journals.pop(task.id, set()) | {piece.machine}:
            self._forget[name].add(task.id)
        self._diary.add(Line(time.time(), "stored", task.id, piece.machine))
        left_s = self._open_s / max(1, len(self._admitted))
        still = f"; {len(self._open)} left, {rounded_duration(left_s)}" if self._open else ""
        self._tell(task, f"{said.summary} of eager's time, from {piece.machine}{still}")

    def _ended(self, piece: _Piece, fault: str) -> None:
        """A piece has ended; without its result it is tried again, where its journal is."""
        if piece.done:
            return
        reason = piece.reason or fault or "it ended without a result"
        if piece.task is None:
            if piece.machine in self._alive and piece.machine not in self._admitted:
                self._refuse(piece.machine, f"it cannot be inspected: {reason}")
            return
        task = piece.task
        self._faults[task.id] = 1 if piece.launches else self._faults[task.id] + 1
        where = f" on {piece.machine}" if piece.machine else ""
        if self._faults[task.id] < MOST_FAULTS:
            self._tell(task, f"stopped{where}: {reason}")
            return
        self._failed[task.id] = reason
        self._close(task)
        self._diary.add(Line(time.time(), "failed", task.id, piece.machine, reason))
        self._tell(task, f"given up{where} after {MOST_FAULTS} attempts: {reason}")

    def _end_hanging(self) -> None:
        """End pieces that are silent for longer than their machine has announced."""
        for number, piece in list(self._pieces.items()):
            if time.monotonic() < piece.limit_s:
                continue
            if piece.slot and not piece.begun:
                # It waits in Ray, and does not hang. The next one may go to other machines.
                self._say_once(
                    f"{', '.join(piece.machines)}: Ray has no free slot there; another fleet run "
                    "measures, or its worker hangs"
                )
                self._abandon(number)
                continue
            if piece.forced:
                self._ended(piece, "it hangs, and Ray cannot end it")
                self._abandon(number)
                continue
            piece.forced = True
            piece.reason = "it hung, and was ended"
            piece.limit_s = time.monotonic() + HANG_S
            self._transport.cancel(number, force=True)

    def _to_forget(self, machine: str) -> tuple[str, ...]:
        return tuple(sorted(self._forget.pop(machine, ()))) if machine else ()

    def _forget_all(self) -> None:
        """Let the machines remove the journals of what is stored. Losing this costs only space."""
        for machine in sorted(self._forget.keys() & self._admitted):
            order = Order(machine, forget=self._to_forget(machine))
            self._start(None, order, [machine], slot=False)
        self._wait_for_end(CANCEL_S)

    def _cancel(self) -> None:
        """End what still runs, on all machines."""
        for number in self._pieces:
            self._transport.cancel(number)
        self._wait_for_end(CANCEL_S)

    def _wait_for_end(self, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while self._pieces and time.monotonic() < until:
            for event in self._transport.hear(HEAR_S):
                if event.said is None:
                    self._pieces.pop(event.piece, None)
        self._pieces.clear()

    # Lines.

    def _tell(self, task: Task, text: str) -> None:
        self._show(f"series {self._number[task.id]} of {len(self._plan.tasks)}: {text}")

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._show(text)


def done(plan: Plan, known: Newest, machines: Sequence[str]) -> set[str]:
    """The series of the plan that the results have, from any of the machines."""
    return {task.id for task in plan.tasks if left.is_complete(known, machines, task.series)}
