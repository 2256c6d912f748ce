"""ASV's files: the list of benchmarks, the machines' descriptions, and what is read of a result.

ASV's result files are made from the measurements (`export`). Those that ``asv run`` writes into
results/ are ASV's own: the suite never reads them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..host import machine
from ..results import descriptions, records, regular
from ..results.records import Problem

# The file of results/ in which ASV records what the benchmarks are.
BENCHMARKS = "benchmarks.json"
_MOST_BYTES = 256 << 20

Axes: TypeAlias = Mapping[str, list[list[str]]]
"""The values on each axis of a benchmark that were measured, by benchmark."""


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


def axes(data: bytes) -> Axes:
    """The axes of each benchmark in a result file that `export` has made."""
    content = json.loads(data)
    at = content["result_columns"].index("params")
    return {name: line[at] for name, line in content["results"].items()}


def fit_axes(benchmarks: dict[str, Any], results: Iterable[Axes]) -> None:
    """Let the axes of ``benchmarks``, the content of benchmarks.json, have what was measured.

    The workloads of other machines are appended to the first axis, sorted. What no result has is
    removed: ASV keeps a value for each place of the grid, in memory and in its files. A benchmark
    without results keeps its axes, and so does one with other axes than its results.
    """
    measured: dict[str, list[set[str]]] = defaultdict(list)
    for one in results:
        for name, own in one.items():
            known = measured[name]
            known += [set() for _ in own[len(known) :]]
            for values, axis in zip(known, own, strict=True):
                values.update(axis)
    for name, known in measured.items():
        params = benchmarks[name]["params"] if name in benchmarks else []
        if not params or len(params) != len(known):
            continue
        first, *others = params
        here = [[*first, *sorted(known[0].difference(first))], *others]
        benchmarks[name]["params"] = [
            [value for value in axis if value in values] or axis
            for axis, values in zip(here, known, strict=True)
        ]
