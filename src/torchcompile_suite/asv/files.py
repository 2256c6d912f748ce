"""ASV's files: the list of benchmarks, the machines' descriptions, and what is read of a result.

ASV's result files are made from the measurements (`export`). Those that ``asv run`` writes into
results/ are ASV's own: the suite never reads them.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..host import machine
from ..results import descriptions, records, regular
from ..results.machines import Value
from ..results.records import Problem

# The file of results/ in which ASV records what the benchmarks are.
BENCHMARKS = "benchmarks.json"
_MOST_BYTES = 256 << 20


class Row(NamedTuple):
    """The values of a benchmark, in the order of the points of its axes.

    NaN: not measured. None: failed.
    """

    version: str | None
    axes: list[list[str]]
    numbers: list[float | None]


class Result(NamedTuple):
    """A result file without its samples, which would fill the memory. ``rows``: by benchmark."""

    machine: str
    commit: str
    rows: dict[str, Row]


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object in ``file``. Raises ValueError with a message of one line."""
    try:
        content = json.loads(regular.read_own(file, _MOST_BYTES))
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    return content


def recorded_benchmarks(results: Path) -> dict[str, dict[str, Any]]:
    """The benchmarks that earlier runs recorded, by name.

    Empty if their file is missing or cannot be read.
    """
    try:
        content = read_object(results / BENCHMARKS)
    except ValueError:
        return {}
    return {name: one for name, one in content.items() if isinstance(one, dict)}


def machines(results: Path, problems: list[Problem]) -> list[Path]:
    """The machine.json of each machine that ASV can read. The others are added to ``problems``."""
    found = []
    for file in sorted(results.glob(f"*/{machine.FILE}")):
        with records.named(f"{file.parent.name}/{file.name}", problems):
            fields = descriptions.read(file.parent).fields
            if (version := fields.pop("version", None)) != 1:
                raise ValueError(f"the version of the file is {version!r}, not 1")
            # ASV uses the other fields as parameters of graphs.
            for key, value in fields.items():
                if not isinstance(value, str):
                    raise ValueError(f"{key} must be text")
            found.append(file)
    return found


def result(data: bytes) -> Result:
    """What is read of a result file that `export` has made."""
    content = json.loads(data)
    rows = {}
    for name, line in content["results"].items():
        row = dict(zip(content["result_columns"], line, strict=False))
        numbers = row["result"]
        rows[name] = Row(
            row.get("version"),
            row.get("params") or [],
            numbers if isinstance(numbers, list) else [numbers],
        )
    return Result(content["params"]["machine"], content["commit_hash"], rows)


def values(results: Iterable[Result], versions: Mapping[str, str]) -> Iterator[Value]:
    """The numbers in the results, by commit, for the choice of a machine.

    ``versions`` are the current versions of the benchmarks, by name. A number of another version
    was measured by an older method.
    """
    for one in results:
        # A file without any number is a result, too.
        yield Value(one.machine, one.commit, None, False, False)
        for name, row in one.rows.items():
            newest = row.version == versions.get(name)
            for point, number in zip(itertools.product(*row.axes), row.numbers, strict=False):
                if number == number:
                    measured = number is not None
                    yield Value(one.machine, one.commit, (name, point), measured, newest)


def fit_axes(benchmarks: dict[str, Any], results: Iterable[Result]) -> None:
    """Let the axes of ``benchmarks``, the content of benchmarks.json, have what was measured.

    The workloads of other machines are appended to the first axis, sorted. What no result has is
    removed: ASV keeps a value for each place of the grid, in memory and in its files. A benchmark
    without results keeps its axes.
    """
    measured: dict[str, list[set[str]]] = defaultdict(list)
    for one in results:
        for name, row in one.rows.items():
            known = measured[name]
            known += [set() for _ in row.axes[len(known) :]]
            for values, axis in zip(known, row.axes, strict=True):
                values.update(axis)
    for name, axes in measured.items():
        first, *others = benchmarks[name]["params"]
        here = [[*first, *sorted(axes[0].difference(first))], *others]
        benchmarks[name]["params"] = [
            [value for value in axis if value in known] or axis
            for axis, known in zip(here, axes, strict=True)
        ]
