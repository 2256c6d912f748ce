"""How much of the matrix a release has: numbers, outcomes with a reason, and unexplained gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ..cell import Cell
from ..compiled import Compiled
from ..measurement import Measurement, Outcome, Status
from ..modes import EAGER

# JSON names of the fields of a `Compiled` that hold a number, or have their reason in ``unknown``.
# The share in graphs is counted for users' models only.
NUMBERS = tuple(
    field.encode_name
    for field in msgspec.structs.fields(Compiled)
    if field.default is None and field.name != "captured_share"
)


class Coverage(NamedTuple):
    """The wanted cells of one release.

    - ``ok``: how many have numbers
    - ``ended``: the outcome of each cell that ended without numbers, with its reason
    - ``missing``: cells that were not measured
    - ``unexplained``: numbers or outcomes that lack a reason, as ``cell: name``
    """

    ok: int
    ended: dict[Cell, Outcome]
    missing: list[Cell]
    unexplained: list[str]


class SeriesCoverage(NamedTuple):
    """One wanted cell over the wanted releases, on one machine.

    - ``machine``: the machine whose measurements were counted; empty if no machine has the cell
    - ``ok``: the releases with numbers
    - ``ended``: the outcome of each release that ended without numbers, with its reason
    - ``missing``: the releases that were not measured
    - ``unexplained``: numbers or outcomes that lack a reason, by release
    """

    cell: Cell
    machine: str
    ok: list[str]
    ended: dict[str, Outcome]
    missing: list[str]
    unexplained: dict[str, list[str]]

    @property
    def failed(self) -> dict[str, Outcome]:
        """The releases that have what the cell needs, and gave no numbers all the same."""
        return {
            release: outcome
            for release, outcome in self.ended.items()
            if outcome.status is not Status.UNSUPPORTED
        }

    @property
    def complete(self) -> bool:
        """Whether each release has numbers, or lacks what the cell needs and says so."""
        return not (self.missing or self.unexplained or self.failed)

    @property
    def _rank(self) -> tuple[bool, int, int]:
        """How much the machine has of the series: the more, the greater."""
        return self.complete and bool(self.ok), len(self.ok), -len(self.missing)


class Measured(NamedTuple):
    """The measurements of one machine, by release, and the kind of device that it measured."""

    by_release: Mapping[str, Sequence[Measurement]]
    device: str


def series(
    machines: Mapping[str, Measured], wanted: Iterable[Cell], releases: Sequence[str]
) -> list[SeriesCoverage]:
    """The coverage of each wanted cell over the releases.

    A series is never divided among machines. So each cell is counted on one machine: the one that
    has the most of it, of equal ones the first by name.
    """
    covered = []
    for cell in wanted:
        found = [_on(name, machines[name], cell, releases) for name in sorted(machines)]
        nowhere = SeriesCoverage(cell, "", [], {}, list(releases), {})
        best = max(found, key=lambda one: one._rank, default=nowhere)
        covered.append(best if best.ok or best.ended else nowhere)
    return covered


def _on(name: str, measured: Measured, cell: Cell, releases: Sequence[str]) -> SeriesCoverage:
    """The coverage of a cell over the releases by the measurements of one machine."""
    one = SeriesCoverage(cell, name, [], {}, [], {})
    for release in releases:
        found = coverage(measured.by_release.get(release, ()), [cell], measured.device)
        one.ok.extend([release] * found.ok)
        one.ended.update((release, outcome) for outcome in found.ended.values())
        one.missing.extend([release] * len(found.missing))
        if found.unexplained:
            one.unexplained[release] = found.unexplained
    return one


def by_release(covered: Sequence[SeriesCoverage], releases: Iterable[str]) -> dict[str, Coverage]:
    """The same count, release by release: each series on its own machine."""
    return {release: _of(covered, release) for release in releases}


def _of(covered: Sequence[SeriesCoverage], release: str) -> Coverage:
    """What the series have of one release."""
    return Coverage(
        sum(release in one.ok for one in covered),
        {one.cell: one.ended[release] for one in covered if release in one.ended},
        [one.cell for one in covered if release in one.missing],
        [gap for one in covered for gap in one.unexplained.get(release, ())],
    )


def coverage(measurements: Iterable[Measurement], wanted: Iterable[Cell], device: str) -> Coverage:
    """The coverage of the wanted cells, on that device, by a release's measurements."""
    by_cell = {measurement.cell: measurement for measurement in measurements}
    ok = 0
    ended: dict[Cell, Outcome] = {}
    missing: list[Cell] = []
    unexplained: list[str] = []
    for plain in wanted:
        cell = msgspec.structs.replace(plain, device=device)
        measurement = by_cell.get(cell)
        if measurement is None:
            missing.append(cell)
        elif measurement.outcome.ok:
            ok += 1
            unexplained += [f"{cell}: {name}" for name in _unexplained(measurement)]
        else:
            ended[cell] = measurement.outcome
            if not measurement.outcome.reason:
                unexplained.append(f"{cell}: {measurement.outcome.status.value}")
    return Coverage(ok, ended, missing, unexplained)


def _unexplained(measurement: Measurement) -> list[str]:
    """The numbers that a successful measurement lacks without a reason."""
    # The processes of a cold start are watched from outside.
    if measurement.cell.mode == EAGER or measurement.cell.target or measurement.cell.start:
        return []
    compiled = measurement.compiled
    if compiled is None:
        return ["what the compiler saw"]
    return [
        name
        for name in NUMBERS
        if getattr(compiled, name) is None and not compiled.unknown.get(name)
    ]
