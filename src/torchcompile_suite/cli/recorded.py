"""What the commands share: the recorded results that they show, and those that they add."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from .._version import __version__
from ..analysis import summaries, summary
from ..errors import SuiteError
from ..host import machine
from ..measurement import Measurement
from ..presentation.wording import printable
from ..releases import catalogue, ledger
from ..results import machines, records, sealing
from ..results.parsing import Problem
from ..results.records import Record, Records

RESULTS = Path("results")
# What the wheel has of them. Git and a checkout that is installed with -e have no such folder.
PUBLISHED = Path(__file__).parents[1] / "published"


class Selection(NamedTuple):
    """The records of one machine."""

    machine: str
    records: list[Record]

    @property
    def versions(self) -> list[str]:
        """The releases that were measured, oldest first."""
        return sorted(
            {record.release for record in self.records if record.release}, key=summary.version_key
        )

    def measurements(self, version: str) -> list[Measurement]:
        """The measurements of one release."""
        return [record.measurement for record in self.records if record.release == version]


def version_named(name: str) -> str:
    """The version that ``name`` stands for: v2.9 is the newest patch of 2.9 that has results.

    A patch that nobody has measured yet hides no results. Raises UnknownRelease.
    """
    with_results = {folder.name for folder in shown().glob("*/*")}
    measured = [one for one in catalogue.everything() if one.version in with_results]
    with suppress(catalogue.UnknownRelease):
        return catalogue.find(name, measured).version
    return catalogue.find(name).version


def not_measured(versions: Sequence[str], machine_name: str) -> SuiteError:
    """What is wrong where a machine has nothing of those versions; of none: of any release."""
    what = " and ".join(f"v{version}" for version in versions) or "a release"
    return SuiteError(f"nothing of {what} was measured on {machine_name}; try: asv run RELEASE^!")


def shown(*, say: bool = False) -> Path:
    """The results to show: those of results/ here, else those that came with the package.

    ``say``: on standard error, if it is the latter.
    """
    if not PUBLISHED.is_dir() or any(RESULTS.glob("*/machine.json")):
        return RESULTS
    if say:
        line = (
            f"there are no {RESULTS} here: the published ones of torchcompile-suite {__version__}"
        )
        click.echo(line, err=True)
    return PUBLISHED


def read_results(folder: Path | None = None, *, environments: bool = False) -> Records:
    """Every readable record of the folder, without samples (`analysis.summaries`).

    Default: those to be shown. Of two environments of a release, the later measurement of a cell;
    with ``environments`` both. Names unreadable files on standard error.
    """
    found = summaries.read(folder or shown(say=True))
    _name(found.problems)
    return found if environments else found._replace(records=_latest(found.records))


def _latest(found: Iterable[Record]) -> list[Record]:
    """The last one of each machine, release and cell: records come in the order of their starts."""
    latest = {(one.machine, one.release or one.commit, one.measurement.cell): one for one in found}
    return list(latest.values())


def read_generated() -> list[Record]:
    """What was generated for targets, on any machine: it is the same on all of them."""
    return summaries.read_generated(shown())


def read_divided(machine_name: str) -> list[Record]:
    """The cells of a machine whose calls were divided, whole."""
    return summaries.read_divided(shown() / machine_name)


def read_divided_of_class(machine_name: str) -> list[Record]:
    """The same of a machine and those of its class; the machine's own come last."""
    hardware = machines.classes(shown())
    names = [name for name, own in hardware.items() if own == hardware.get(machine_name)]
    names.sort(key=lambda name: (name == machine_name, name))
    return [record for name in names or [machine_name] for record in read_divided(name)]


def select(
    machine_name: str | None,
    versions: Sequence[str] = (),
    *,
    generated: bool = False,
    completeness_first: bool = False,
    every: bool = True,
    own: bool = False,
) -> Selection:
    """The records of the machine that `machines.choose` chooses for those releases.

    ``generated``: those of cells with a target as well. Names unreadable files on standard error,
    and says there why it is another machine than this one. Raises NoResultsError.
    """
    folders, problems = records.machine_folders(shown(say=True))

    def of(some: Iterable[Path]) -> list[Record]:
        return [one for each in some for one in _records(each, problems, generated=generated)]

    # Results of many machines take long to read: the others only if the named one has none.
    named = [folder for folder in folders if folder.name == machine_name]
    try:
        found = of(named) or of(folder for folder in folders if folder not in named)
        choice = machines.choose(
            found,
            versions,
            here=machine.shown_first(),
            named=machine_name,
            labels=[f"v{version}" for version in versions],
            completeness_first=completeness_first,
            every=every,
            own=own,
        )
    finally:
        _name(problems)
    if choice.line:
        click.echo(printable(choice.line), err=True)
    mine = [record for record in found if record.machine == choice.machine]
    return Selection(choice.machine, mine)


def assembled(selection: Selection, versions: Sequence[str]) -> Selection:
    """The selection with the records of other machines of its class.

    Each cell comes from one machine, the one that has it most completely (`machines.assemble`).
    Says on standard error which machines take part, if there are several.
    """
    known = machines.classes(shown())
    mine = known.get(selection.machine)
    records_of_class = list(selection.records)
    problems: list[Problem] = []
    for name, of_name in known.items():
        if of_name == mine and name != selection.machine:
            records_of_class += _records(shown() / name, problems)
    _name(problems)
    found = machines.assemble(records_of_class, versions)
    if len(found.machines) > 1:
        click.echo(
            printable(
                f"each cell from the machine of the class {mine} that has it most completely: "
                f"{', '.join(found.machines)}; --machine NAME shows one of them"
            ),
            err=True,
        )
    return selection._replace(records=found.records)


def save(measurements: Sequence[Measurement]) -> list[str]:
    """Add the measurements of a trial to results/. Returns what there is to say about it.

    Raises SuiteError if the release is not in the ledger, or if a file cannot be written.
    """
    if not measurements:
        return []
    commits = ledger.commit_of()
    # All are of one torch. One that ended early, such as a timeout, does not know it.
    torch = next(filter(None, map(records.release, measurements)), "")
    if torch not in commits:
        raise SuiteError(
            f"torch {torch or 'of a failed cell'} is not a release of the ledger, so --save "
            "has no place for it; see: torchcompile-suite releases list"
        )
    kind = measurements[0].cell.device
    folder = RESULTS / machine.detect(kind=kind).machine
    try:
        machine.keep(folder, machine.fields(folder.name, kind))
        for measurement in measurements:
            records.append(records.path(folder, commits[torch], records.TRIAL), measurement)
    except OSError as error:
        raise SuiteError(f"cannot write to {folder}: {error.strerror}") from None
    left = [f"not sealed: {problem}" for problem in sealing.seal(folder).problems]
    return [f"saved to {folder}; to see it on the site: nox -s site", *left]


def _records(folder: Path, problems: list[Problem], *, generated: bool = False) -> list[Record]:
    """The records of a machine's folder."""
    found = summaries.read_machine(folder)
    problems += found.problems
    timed = _latest(found.records)
    return [*timed, *found.generated] if generated else timed


def _name(problems: Sequence[Problem]) -> None:
    for problem in problems:
        click.echo(printable(f"left out: {problem}"), err=True)
