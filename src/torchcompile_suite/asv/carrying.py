"""Carries old results over to the store: ``python -m torchcompile_suite.asv.carrying RESULTS``.

Older versions of the suite committed journals of records, which only grew, and ASV's result files.
The journals become segments. An ASV file is deleted once each of its values is made of a
measurement. `torchcompile-suite results carry-over` runs this in a process of its own: no command
but ASV's imports ASV.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SuiteError
from ..presentation.wording import printable
from ..releases import ledger
from ..results import asv_files, records, sealing
from ..results.asv_files import Result
from ..results.records import Problem
from . import export


class Carried(NamedTuple):
    """What was done: the number of measurements, new segments, removed files; what stays, why."""

    measurements: int
    segments: int
    removed: int
    problems: list[Problem]


def carry_over(results: Path, package: Path) -> Carried:
    """Carry the results over. ``package``: the folder of the benchmarks.

    Running it again changes nothing. What cannot be carried over stays as it is. Raises OSError,
    and SuiteError if a measurement is missing afterwards.
    """
    before = _identities(results)
    made, problems = sealing.seal_all(results)
    after = _identities(results)
    if lost := before - after:
        raise SuiteError(f"{len(lost)} measurements are not in the segments: restore {results}")
    removed = _remove(results, package, problems)
    return Carried(len(after), len(made), removed, problems)


def _identities(results: Path) -> set[tuple[str, str]]:
    """All measurements: the place and the identity of each."""
    return {
        (str(journal), entry.identity)
        for folder in records.machine_folders(results)[0]
        for journal, files in records.files(folder)[0].items()
        for entries, _ in records.read_files(files)
        for entry in entries
    }


def _remove(results: Path, package: Path, problems: list[Problem]) -> int:
    """Remove the files of ASV's whose values the measurements give. Returns their number."""
    commits = ledger.compute()[0]
    checked = asv_files.check(results, commits)
    problems += checked.problems
    removed = 0
    for made in export.derive(results, checked.machines.values(), commits, package, []):
        old = checked.results.get(results / made.path)
        if old is None:
            continue
        new = asv_files.result(made.content, made.path.parent.name, commits)
        missing = len(dict(_values(old)).items() - dict(_values(new)).items())
        if missing:
            reason = f"{missing} of its values are not those of a measurement; it stays"
            problems.append(Problem(str(made.path), reason))
        else:
            (results / made.path).unlink()
            removed += 1
    return removed


def _values(result: Result) -> Iterator[tuple[tuple[str, tuple[str, ...]], Any]]:
    """What ASV knows of each place that was measured: version, value, statistics, samples."""
    for name, line in result.results.items():
        row = dict(zip(result.result_columns, line, strict=False))
        points = list(itertools.product(*(row.get("params") or [])))
        columns = [
            row.get(column)
            for column in result.result_columns
            if column in ("result", "samples") or column.startswith("stats_")
        ]
        for at, point in enumerate(points):
            value = [one[at] if isinstance(one, list) else one for one in columns]
            if value[0] is None or not math.isnan(value[0]):
                yield (name, point), repr((row.get("version"), value))


def main() -> None:
    """Carry over, and say what was done."""
    results = Path(sys.argv[1])
    try:
        carried = carry_over(results, Path("benchmarks"))
    except (SuiteError, OSError) as error:
        raise SystemExit(printable(str(error))) from None
    for problem in carried.problems:
        print(printable(f"stays: {problem}"), file=sys.stderr)
    print(
        f"{carried.measurements} measurements in {results}; new segments: {carried.segments}; "
        f"removed files of ASV's: {carried.removed}"
    )


if __name__ == "__main__":
    main()
