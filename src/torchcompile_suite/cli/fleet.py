"""``torchcompile-suite fleet``: series on many machines, with Ray as transport.

Ray is imported only by the commands that need it: `plan` and `node` work without.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

import msgspec
import typer
from filelock import FileLock, Timeout

from .. import matrix, published
from ..asv import command
from ..cell import Cell
from ..doctor import Level
from ..errors import SuiteError
from ..fleet import checkup, driver, inspection, left, options, planning
from ..fleet.diary import Diary, Plan
from ..fleet.driver import Driver
from ..fleet.durations import Durations
from ..fleet.head import watched
from ..fleet.left import Newest, Task
from ..fleet.messages import ClusterLost, Order
from ..fleet.store import Store
from ..host import machine
from ..measuring.series import Series
from ..measuring.settings import BUDGET_VARIABLE, NEEDED_FOR_CACHE_BYTES, Settings
from ..presentation import sheets, terminal
from ..presentation.terminal import console, one_line_errors
from ..presentation.wording import printable
from ..releases import catalogue, ledger, sizes
from ..releases.catalogue import Release
from ..results import classes, records
from .history import BUDGET_S, in_order, newest_patches
from .recorded import RESULTS, read_results

if TYPE_CHECKING:
    from ..fleet.transport import Cluster

app = typer.Typer(
    help="Measure on many machines: each cell on one of them, all its releases in turns.",
    no_args_is_help=True,
)
# Below .asv/, like all that a run leaves and git does not keep.
FOLDER = Path(".asv/fleet")
MACHINES = (1, 2, 4, 8, 16, 32, 64)
# How long a machine may be away before its series begin anew elsewhere.
WAIT_MINUTES = 30.0
# How long the first machine of a cluster may take to join.
JOIN_S = 120.0
# Of one measurement in a segment: what segments of this repository have.
SEGMENT_BYTES = 4 << 10

Releases = Annotated[
    list[str] | None,
    typer.Argument(help="Such as v2.4 v2.9; else the newest patch of every minor release."),
]
Cells = Annotated[
    str,
    typer.Option(
        "--cells",
        help="core, history (those of the published history), all, or a regular expression for "
        "texts such as inference.Inference('resnet18', 1, 'default').",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option("--rounds", min=1, help="Measure so many rounds, whatever they show."),
]
Address = Annotated[
    str | None,
    typer.Option("--address", help="Head of the Ray cluster, HOST:PORT. Default: this machine."),
]
Hardware = Annotated[
    str | None,
    typer.Option("--class", help="Class of the machines to use, if the cluster has several."),
]


def _releases(names: Sequence[str] | None) -> list[Release]:
    chosen = in_order([catalogue.find(name) for name in names or []])
    chosen = chosen or newest_patches(catalogue.read())
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
        return list(published.SERIES)
    try:
        found = matrix.cells_matching("" if cells == "all" else cells)
    except re.error as error:
        raise SuiteError(f"--cells {cells!r} is no regular expression: {error}") from None
    if not found:
        raise SuiteError(f'--cells {cells!r} matches no cell; try: --cells "Inference.*resnet18"')
    return found


def _plan(
    releases: Sequence[Release],
    cells: Sequence[Cell],
    rounds: int | None,
    hardware: str,
    durations: Durations,
) -> Plan:
    os.environ.setdefault(BUDGET_VARIABLE, str(BUDGET_S))
    settings = Settings.from_environment()
    settings = settings._replace(launches=rounds or settings.launches)
    device = "cpu" if hardware.endswith("-cpu") else "cuda"
    versions = tuple(release.version for release in releases)
    plans = [
        Series.of(msgspec.structs.replace(cell, device=device), versions, settings)
        for cell in cells
    ]
    environment = command.environment_name()
    return Plan(hardware, environment, left.tasks(plans, environment, durations))


class _Known(NamedTuple):
    """The results here: the newest measurements, and the names of the machines of a class."""

    recorded: list[records.Record]
    newest: Newest
    machines: list[str]

    @classmethod
    def read(cls, hardware: str) -> _Known:
        recorded = read_results().records if RESULTS.is_dir() else []
        named = classes.of_machines(RESULTS, []).items()
        machines = [name for name, of in named if machine.as_label(of) == hardware]
        newest = left.newest(recorded, command.environment_name(), _commits())
        return cls(recorded, newest, machines)

    def durations(self) -> Durations:
        """The recorded durations; those of the class come first."""
        return Durations(self.recorded, BUDGET_S, self.machines)


def _commits() -> dict[str, str]:
    """The ledger's commit of each release, as in the names of files."""
    commits = ledger.commit_of()
    return {version: commit[: records.COMMIT_DIGITS] for version, commit in commits.items()}


def _here() -> str:
    return machine.as_label(machine.class_of(machine.detect()._asdict()))


@app.command()
def plan(
    releases: Releases = None,
    cells: Cells = "history",
    rounds: Rounds = None,
    machines: Annotated[
        int | None, typer.Option("--machines", min=1, help="So many machines, on paper.")
    ] = None,
    hardware: Hardware = None,
) -> None:
    """Print the series that are left, and the hours and bytes for them. Measures nothing.

    Durations are those of earlier measurements in results/. Example: torchcompile-suite fleet plan
    --cells core --machines 64
    """
    with one_line_errors():
        chosen = _releases(releases)
        label = hardware or _here()
        known = _Known.read(label)
        durations = known.durations()
        made = _plan(chosen, _cells(cells), rounds, label, durations)
        done = driver.done(made, known.newest, known.machines)
        waiting = [task for task in made.tasks if task.id not in done]
        typer.echo(
            f"class {label}: {len(made.tasks)} series of {len(chosen)} releases; {len(done)} are "
            f"complete, {len(waiting)} are left"
        )
        if waiting:
            _print_plan(waiting, durations, machines, chosen)


def _print_plan(
    waiting: Sequence[Task],
    durations: Durations,
    machines: int | None,
    releases: Sequence[Release],
) -> None:
    seconds = [task.seconds for task in waiting]
    recorded = sum(
        durations.of(task.series.cell, task.series.releases).recorded for task in waiting
    )
    typer.echo(
        f"durations: {recorded} of {len(waiting) * len(releases)} are recorded; the others are the "
        f"cell's in other releases, else {durations.otherwise_s:g} s for a release"
    )
    expected = [planning.expected(seconds, one) for one in ([machines] if machines else MACHINES)]
    rows = [(one.machines, one.seconds, one.ideal_s, one.efficiency) for one in expected]
    console().print(terminal.draw(sheets.fleet(rows)))
    gigabytes = sizes.needed_bytes(releases) / 1e9
    typer.echo(
        f"on each machine: up to {gigabytes:.0f} GB for {len(releases)} releases, whose "
        f"installation is not in these hours, and {NEEDED_FOR_CACHE_BYTES >> 30} GB for compiled "
        "code"
    )
    size = len(waiting) * len(releases) * SEGMENT_BYTES
    typer.echo(f"results/ grows by about {max(1, size >> 20)} MB")


@app.command()
def node(
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name in results/. Default: class of the hardware, host."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Name of the host, where the container has another one."),
    ] = None,
    head: Annotated[
        bool, typer.Option("--head", help="Options for the head, which measures nothing.")
    ] = False,
) -> None:
    """Print the options of `ray start` that make this machine a node of a fleet.

    Example: ray start --address=HEAD:6379 $(torchcompile-suite fleet node)
    """
    with one_line_errors():
        if head:
            typer.echo(" ".join(options.of_head()))
            return
        typer.echo(" ".join(options.of_machine(machine.name_in_fleet(name, host), _here())))


@app.command()
def run(
    releases: Releases = None,
    cells: Cells = "history",
    rounds: Rounds = None,
    address: Address = None,
    hardware: Hardware = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0, help="Minutes for which a lost machine's series wait for it."
        ),
    ] = WAIT_MINUTES,
) -> None:
    """Measure what is left of a plan on the machines of a cluster, or on this machine alone.

    Interrupt it at any time; rerun the same command to resume.

    Exit status: 0 measured, 1 a series was given up, 130 interrupted.

    Example: torchcompile-suite fleet run v2.4 v2.9 v2.15 --address 10.0.0.1:6379
    """
    with one_line_errors(), _alone():
        chosen = _releases(releases)
        wanted = _cells(cells)
        with _cluster(address) as cluster:
            label = _class_of(cluster, hardware)
            try:
                _run(cluster, chosen, wanted, rounds, label, wait * 60)
            except KeyboardInterrupt:
                _say("stopped on all machines; rerun the same command to resume")
                raise typer.Exit(130) from None


def _run(
    cluster: Cluster,
    releases: Sequence[Release],
    cells: Sequence[Cell],
    rounds: int | None,
    label: str,
    wait_s: float,
) -> None:
    versions = [release.version for release in releases]
    commits = _commits()
    known = _Known.read(label)
    made = _plan(releases, cells, rounds, label, known.durations())
    done = driver.done(made, known.newest, known.machines)
    store = Store(RESULTS, known.recorded, commits, made.environment)
    del known  # the run may take weeks, and nobody needs the measurements any more
    diary = Diary(FOLDER)
    diary.write_plan(made)
    _say(f"{len(made.tasks)} series of {', '.join(versions)}; {len(done)} are complete")
    ended = Driver(
        cluster,
        made,
        store,
        diary,
        python=command.python(),
        commits=commits,
        mine=inspection.described(Order("driver", releases=tuple(versions))),
        done=done,
        wait_s=wait_s,
        show=_say,
    ).run()
    _say(f"{ended.stored} series were measured now; {len(done)} were complete before")
    for identity, reason in ended.failed.items():
        cell = next(task.series.cell for task in made.tasks if task.id == identity)
        typer.echo(printable(f"not measured: {cell}: {reason}"), err=True)
    if ended.failed:
        raise typer.Exit(1)


@app.command()
def status(address: Address = None) -> None:
    """Print what of the newest plan is complete, running, waiting, lost and failed.

    With --address it also asks the cluster. Without, it reads files only.
    """
    with one_line_errors():
        diary = Diary(FOLDER)
        made = diary.read_plan()
        if made is None:
            raise SuiteError("there is no plan here yet; start with: torchcompile-suite fleet run")
        known = _Known.read(made.hardware)
        done = driver.done(made, known.newest, known.machines)
        alive: set[str] | None = None
        free: set[str] = set()
        if address:
            with _cluster(address) as cluster:
                alive, free = set(cluster.machines()[0]), cluster.free()
        lines: dict[str, list[str]] = {
            name: [] for name in ("complete", "running", "waiting", "lost", "failed")
        }
        for task in made.tasks:
            state, text = _state(task, diary, done, alive, free)
            lines[state].append(f"{state}: {task.series.cell}{text}")
        for state, of_state in lines.items():
            for line in of_state if state != "complete" else ():
                typer.echo(printable(line))
        typer.echo(", ".join(f"{len(many)} {name}" for name, many in lines.items()))
        if alive is not None:
            typer.echo(f"machines: {', '.join(sorted(alive)) or 'none'}; free: {len(free & alive)}")


def _state(
    task: Task, diary: Diary, done: set[str], alive: set[str] | None, free: set[str]
) -> tuple[str, str]:
    """The state of a series, and what else is known of it."""
    home = diary.home.get(task.id)
    if task.id in done:
        return "complete", ""
    if task.id in diary.failed:
        return "failed", f": {diary.failed[task.id]}"
    if home is None:
        return "waiting", ""
    if home in diary.lost or (alive is not None and home not in alive):
        since = diary.lost.get(home, time.time())
        return "lost", f" with {home}, since {time.strftime('%d %b %H:%M', time.localtime(since))}"
    if alive is None:
        return "running", f" on {home}, by the diary; --address asks the cluster"
    return ("waiting", f" for {home}") if home in free else ("running", f" on {home}")


@app.command()
def doctor(
    releases: Releases = None,
    address: Address = None,
    hardware: Hardware = None,
) -> None:
    """Check every machine of a cluster, and name those that `run` would refuse.

    It takes some seconds of each machine's processors. Exit status 1: a machine is refused.
    """
    with one_line_errors():
        chosen = [release.version for release in _releases(releases)]
        with _cluster(address) as cluster:
            label = _class_of(cluster, hardware)
            found = checkup.checkup(cluster, chosen, command.python())
        mine = inspection.described(Order("driver", releases=tuple(chosen)))
        refused = len(found.faults)
        for text in found.faults:
            typer.echo(printable(f"refused   {text}"))
        for name, described in sorted(found.described.items()):
            reason = inspection.refusal(described, mine, chosen, label)
            refused += bool(reason)
            typer.echo(printable(f"refused   {name}: {reason}" if reason else f"ok        {name}"))
            for fault in described.faults:
                if fault.level is Level.WARNING and fault.name not in inspection.SPOILING:
                    remedy = f" (remedy: {fault.remedy})" if fault.remedy else ""
                    typer.echo(printable(f"  warning {fault.name}: {fault.says}{remedy}"))
        if refused:
            raise typer.Exit(1)


@contextmanager
def _alone() -> Iterator[None]:
    """Raise SuiteError if another driver works in this folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(FOLDER / "lock").acquire(timeout=0):
            yield
    except Timeout:
        raise SuiteError("another fleet run works in this folder; end it, or wait") from None


def _leave(error: ClusterLost) -> NoReturn:
    """End this process. Without its head Ray cannot be left in order: it would wait, then abort."""
    typer.echo(
        printable(f"torchcompile-suite: {error}; rerun the same command to resume"), err=True
    )
    sys.stdout.flush()
    os._exit(1)


@contextmanager
def _cluster(address: str | None) -> Iterator[Cluster]:
    """The cluster at that address, or one of this machine. It is left at the end."""
    os.environ.update(options.VARIABLES)
    try:
        from ..fleet.transport import Cluster
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise SuiteError(
            "Ray is not installed in this Python; pip install 'torchcompile-suite[fleet]'"
        ) from None
    cluster = Cluster()
    if address:
        cluster.connect(address)
    else:
        cluster.start_here(machine.name_in_fleet(machine.detect().machine), _here())
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with watched(cluster.address(), _leave):
            yield cluster
    except ClusterLost as error:
        _leave(error)
    finally:
        signal.signal(signal.SIGTERM, before)
        cluster.close()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _class_of(cluster: Cluster, hardware: str | None) -> str:
    """The class to measure: the only one in the cluster, or the one that the user names."""
    until = time.monotonic() + JOIN_S
    while not (found := cluster.machines())[0]:
        for fault in found[1]:
            raise SuiteError(fault)
        if time.monotonic() > until:
            raise SuiteError(
                "no machine of the cluster has the resource bench; start them with what "
                "torchcompile-suite fleet node prints"
            )
        time.sleep(1.0)
    present = sorted({one.hardware for one in found[0].values()})
    if hardware is None and len(present) > 1:
        raise SuiteError(f"machines of several classes; choose one with --class: {present}")
    if hardware is not None and hardware not in present:
        raise SuiteError(f"no machine of class {hardware}; there are: {', '.join(present)}")
    return hardware or present[0]


def _say(text: str) -> None:
    typer.echo(printable(f"{time.strftime('%H:%M:%S')} {text}"))
