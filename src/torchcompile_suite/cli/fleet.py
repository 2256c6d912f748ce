"""``torchcompile-suite fleet``: series on many machines, with Ray as transport.

Ray is imported only by the commands that need it: `plan` and `node` work without.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from .. import matrix
from ..asv import command
from ..cell import Cell
from ..doctor import Level
from ..engine.settings import BUDGET_VARIABLE, NEEDED_FOR_CACHE_BYTES, Settings
from ..errors import SuiteError
from ..fleet import inspection
from ..fleet.driver import Driver
from ..fleet.head import VARIABLES, options_of_head, options_of_machine, watched
from ..fleet.messages import ClusterLost, Order
from ..fleet.plan import Known, Plan, Task, expected
from ..fleet.store import Diary, Store
from ..host import machine, programs
from ..host.files import held
from ..presentation import sheets
from ..presentation.terminal import Output
from ..presentation.wording import printable
from ..releases import ledger, room
from ..releases.catalogue import Release
from ..results import records
from ..results.machines import classes
from .app import Commands
from .history import BUDGET_S, chosen_releases
from .options import Finite, releases_argument, rounds_option
from .recorded import RESULTS, read_results

if TYPE_CHECKING:
    from ..fleet.transport import Cluster

app = Commands(
    "fleet", help="Measure on many machines: each cell on one of them, all its releases in turns."
)
# Below .asv/, like all that a run leaves and git does not keep.
FOLDER = Path(".asv/fleet")
MACHINES = (1, 2, 4, 8, 16, 32, 64)
# How long a machine may be away before its series begin anew elsewhere.
WAIT_MINUTES = 30.0
# Of one measurement in a segment: what segments of this repository have.
SEGMENT_BYTES = 4 << 10

cells_option = click.option(
    "--cells",
    default="history",
    help="core, history (those of the published history), all, or a regular expression for "
    "texts such as inference.Inference('resnet18', 1, 'default'), without a metric.",
)
address_option = click.option(
    "--address", help="Head of the Ray cluster, HOST:PORT. Default: this machine."
)
hardware_option = click.option(
    "--class", "hardware", help="Class of the machines to use, if the cluster has several."
)


def _releases(names: Sequence[str] | None) -> list[Release]:
    chosen = chosen_releases(names)
    if len(chosen) < 2:
        raise SuiteError("a series has at least two releases; name another, or none for all")
    python = command.python()
    for release in chosen:
        if not release.supports(python):
            raise SuiteError(
                f"PyTorch {release.version} has no wheels for Python {python}; leave it out"
            )
    return chosen


def _cells(cells: str) -> list[Cell]:
    if cells == "core":
        return matrix.core_cells()
    if cells == "history":
        return list(matrix.SERIES)
    try:
        every = matrix.cells_matching("" if cells == "all" else cells)
    except re.error as error:
        raise SuiteError(f"--cells {cells!r} is no regular expression: {error}") from None
    # Generated code is the same on each machine: one of them makes it.
    found = [cell for cell in every if not cell.target]
    if every and not found:
        raise SuiteError(f"--cells {cells!r} matches only generated code: asv run makes it")
    if not found:
        tried = "Inference.*'resnet18'"
        raise SuiteError(f'--cells {cells!r} matches no cell; try: --cells "{tried}"')
    return found


class _Wanted(NamedTuple):
    """What the arguments name."""

    releases: list[Release]
    cells: list[Cell]
    rounds: int | None

    def plan(self, known: Known) -> Plan:
        os.environ.setdefault(BUDGET_VARIABLE, str(BUDGET_S))
        settings = Settings.from_environment()
        settings = settings._replace(launches=self.rounds or settings.launches)
        return known.plan(self.cells, [release.version for release in self.releases], settings)


def _known(hardware: str) -> Known:
    """The results here, for a plan of machines of that class."""
    commits = {
        version: commit[: records.COMMIT_DIGITS] for version, commit in ledger.commit_of().items()
    }
    named = classes(RESULTS).items()
    machines = [name for name, of in named if machine.as_label(of) == hardware]
    environment = command.environment_name()
    found = read_results(RESULTS, environments=True)
    known = [*found.records, *found.divided]
    return Known(known, hardware, machines, environment, commits, BUDGET_S)


def _here() -> str:
    return machine.as_label(machine.class_of(machine.detect()._asdict()))


@app.command()
@releases_argument
@cells_option
@rounds_option
@click.option(
    "--machines",
    type=click.IntRange(min=1, max=1000),
    help="Estimate for this number of machines. Default: 1 to 64.",
)
@hardware_option
def plan(
    releases: tuple[str, ...],
    cells: str,
    rounds: int | None,
    machines: int | None,
    hardware: str | None,
) -> None:
    """Print the series that are left, and the hours and bytes for them. Measures nothing.

    Durations are those of earlier measurements in results/. Example: torchcompile-suite fleet plan
    --cells core --machines 64
    """
    wanted = _Wanted(_releases(releases), _cells(cells), rounds)
    known = _known(hardware or _here())
    made = wanted.plan(known)
    done = known.done(made)
    waiting = [task for task in made.tasks if task.id not in done]
    click.echo(
        f"class {made.hardware}: {len(made.tasks)} series of {len(made.releases)} releases; "
        f"{len(done)} are complete, {len(waiting)} are left"
    )
    if waiting:
        _print_plan(waiting, known, machines, wanted.releases)


def _print_plan(
    waiting: Sequence[Task], known: Known, machines: int | None, releases: Sequence[Release]
) -> None:
    durations = known.durations
    recorded = sum(
        durations.of(task.series.cell, task.series.releases).recorded for task in waiting
    )
    size = len(waiting) * len(releases)
    click.echo(
        f"durations: {recorded} of {size} are recorded; the others are the cell's in other "
        f"releases, else {durations.otherwise_s:g} s for a release"
    )
    seconds = [task.seconds for task in waiting]
    rows = [expected(seconds, one) for one in ([machines] if machines else MACHINES)]
    Output().draw(sheets.fleet(rows))
    gigabytes = room.needed_bytes(releases) / 1e9
    click.echo(
        f"on each machine: up to {gigabytes:.0f} GB for {len(releases)} releases, whose "
        f"installation is not in these hours, and {NEEDED_FOR_CACHE_BYTES >> 30} GB for compiled "
        "code"
    )
    click.echo(f"results/ grows by about {max(1, size * SEGMENT_BYTES >> 20)} MB")


@app.command()
@click.option("--name", help="Name in results/. Default: class of the hardware, host.")
@click.option("--host", help="Name of the host, where the container has another one.")
@click.option("--head", is_flag=True, help="Options for the head, which measures nothing.")
def node(name: str | None, host: str | None, head: bool) -> None:
    """Print the options of `ray start` that make this machine a node of a fleet.

    Example: ray start --address=HEAD:6379 $(torchcompile-suite fleet node)
    """
    if head:
        click.echo(" ".join(options_of_head()))
        return
    click.echo(" ".join(options_of_machine(machine.name_in_fleet(name, host), _here())))


@app.command()
@releases_argument
@cells_option
@rounds_option
@address_option
@hardware_option
@click.option(
    "--wait",
    type=Finite(min=0),
    default=WAIT_MINUTES,
    help="Minutes for which a lost machine's series wait for it.",
)
def run(
    releases: tuple[str, ...],
    cells: str,
    rounds: int | None,
    address: str | None,
    hardware: str | None,
    wait: float,
) -> None:
    """Measure what is left of a plan on the machines of a cluster, or on this machine alone.

    Interrupt it at any time; rerun the same command to resume.

    Exit status: 0 measured, 1 a series was given up, 130 interrupted.

    Example: torchcompile-suite fleet run v2.4 v2.9 v2.15 --address 10.0.0.1:6379
    """
    with held(FOLDER / "lock", "another fleet run works in this folder; end it, or wait"):
        wanted = _Wanted(_releases(releases), _cells(cells), rounds)
        with _cluster(address) as cluster:
            try:
                _run(cluster, wanted, inspection.class_of(cluster, hardware), wait * 60)
            except KeyboardInterrupt:
                _say("stopped on all machines; rerun the same command to resume")
                raise SystemExit(130) from None


def _run(cluster: Cluster, wanted: _Wanted, hardware: str, wait_s: float) -> None:
    known = _known(hardware)
    made = wanted.plan(known)
    done = known.done(made)
    store = Store(RESULTS, known.records, known.commits, known.environment)
    del known  # the run may take weeks, and nobody needs the measurements any more
    diary = Diary(FOLDER)
    diary.write_plan(made)
    _say(f"{len(made.tasks)} series of {', '.join(made.releases)}; {len(done)} are complete")
    ended = Driver(
        cluster,
        made,
        store,
        diary,
        python=command.python(),
        mine=inspection.described(Order("driver", releases=made.releases)),
        done=done,
        wait_s=wait_s,
        show=_say,
    ).run()
    _say(f"{ended.stored} series were measured now; {len(done)} were complete before")
    for identity, reason in ended.failed.items():
        cell = next(task.series.cell for task in made.tasks if task.id == identity)
        click.echo(printable(f"not measured: {cell}: {reason}"), err=True)
    if ended.failed:
        raise SystemExit(1)


@app.command()
@address_option
def status(address: str | None) -> None:
    """Print what of the newest plan is complete, running, waiting, lost and failed.

    With --address it also asks the cluster. Without, it reads files only.
    """
    diary = Diary(FOLDER)
    made = diary.read_plan()
    if made is None:
        raise SuiteError("there is no plan here yet; start with: torchcompile-suite fleet run")
    done = _known(made.hardware).done(made)
    alive: set[str] | None = None
    free: set[str] = set()
    if address:
        with _cluster(address) as cluster:
            alive, free = set(cluster.machines()[0]), cluster.free()
    lines: dict[str, list[str]] = {
        name: [] for name in ("complete", "running", "waiting", "lost", "failed")
    }
    for task in made.tasks:
        state, text = diary.state(task.id, alive, free)
        if task.id in done:
            state = "complete"
        lines[state].append(f"{state}: {task.series.cell}{text}")
    for state, of_state in lines.items():
        for line in of_state if state != "complete" else ():
            click.echo(printable(line))
    click.echo(", ".join(f"{len(many)} {name}" for name, many in lines.items()))
    if alive is not None:
        click.echo(f"machines: {', '.join(sorted(alive)) or 'none'}; free: {len(free & alive)}")


@app.command()
@releases_argument
@address_option
@hardware_option
def doctor(releases: tuple[str, ...], address: str | None, hardware: str | None) -> None:
    """Check every machine of a cluster, and name those that `run` would refuse.

    It takes some seconds of each machine's processors. Exit status 1: a machine is refused.
    """
    chosen = [release.version for release in _releases(releases)]
    with _cluster(address) as cluster:
        label = inspection.class_of(cluster, hardware)
        found, faults = inspection.checkup(cluster, chosen, command.python())
    mine = inspection.described(Order("driver", releases=tuple(chosen)))
    refused = len(faults)
    for text in faults:
        click.echo(printable(f"refused   {text}"))
    for name, described in sorted(found.items()):
        reason = inspection.refusal(described, mine, label, RESULTS)
        refused += bool(reason)
        click.echo(printable(f"refused   {name}: {reason}" if reason else f"ok        {name}"))
        for fault in described.faults:
            if fault.level is Level.WARNING and fault.name not in inspection.SPOILING:
                remedy = f" (remedy: {fault.remedy})" if fault.remedy else ""
                click.echo(printable(f"  warning {fault.name}: {fault.says}{remedy}"))
    if refused:
        raise SystemExit(1)


def _leave(error: ClusterLost) -> NoReturn:
    """End this process. Without its head Ray cannot be left in order: it would wait, then abort."""
    click.echo(
        printable(f"torchcompile-suite: {error}; rerun the same command to resume"), err=True
    )
    sys.stdout.flush()
    os._exit(1)


@contextmanager
def _cluster(address: str | None) -> Iterator[Cluster]:
    """The cluster at that address, or one of this machine. It is left at the end."""
    os.environ.update(VARIABLES)
    from ..fleet.transport import Cluster

    cluster = Cluster()
    if address:
        cluster.connect(address)
    else:
        own = machine.detect().machine
        short = own if len(own) <= machine.LABEL_CHARACTERS else None
        cluster.start_here(machine.name_in_fleet(short), _here())
    programs.stop_in_order()  # Ray has put a handler of its own there
    try:
        with watched(cluster.address(), _leave):
            yield cluster
    except ClusterLost as error:
        _leave(error)
    finally:
        cluster.close()


def _say(text: str) -> None:
    click.echo(printable(f"{time.strftime('%H:%M:%S')} {text}"))
