"""Which of ASV's result files can be read: ASV itself stops at the first broken one.

Results come from machines and people that we do not know. So each file is checked before ASV reads
it. A file that is broken, truncated or foreign is named and left out.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from . import descriptions, regular
from .descriptions import check_text
from .machines import Value
from .records import Problem

# Larger than any time, count or size. ASV fails when a computation overflows.
LARGEST = 1e30
# Smaller than any of them but 0.
SMALLEST = 1e-30
Name = Annotated[str, msgspec.Meta(max_length=500)]
# Of a result file: ASV's own of ten thousand cells has 30 MB.
_MOST_BYTES = 256 << 20
Numbers = list[float | None] | float | None


class Result(msgspec.Struct):
    """What ASV 0.6 writes for a machine, commit and environment."""

    commit_hash: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}\Z")]
    date: int
    env_name: Name
    params: dict[Name, Name | None]
    python: Name
    requirements: dict[Name, Any]
    result_columns: list[Name]
    results: dict[Name, list[Any]]
    version: Literal[2]
    env_vars: dict[Name, Name] = {}
    durations: dict[Name, Any] = {}


# The file of results/ in which ASV records what the benchmarks are.
BENCHMARKS = "benchmarks.json"


class Checked(NamedTuple):
    """The sound files under results/, and the problems of the others.

    ``machines`` maps the name of each machine to its machine.json.
    """

    machines: dict[str, Path]
    results: dict[Path, Result]
    problems: list[Problem]

    @property
    def files(self) -> set[Path]:
        """Every sound file."""
        return {*self.machines.values(), *self.results}


# The columns of a benchmark's line, by name. ASV omits empty columns at the end.
_COLUMNS: dict[str, Any] = {
    "result": Numbers,
    "params": list[list[Name]] | None,
    "version": Name | None,
    "started_at": int | None,
    "duration": float | None,
    "samples": list[list[float] | None] | None,
    "profile": Any,
}


def check(results: Path, commits: Container[str] | None) -> Checked:
    """Check every file of ASV's under ``results``.

    ``commits`` are those of the ledger: ASV cannot place a result of another commit. It is None
    where the repository is a clone of PyTorch, in which ASV looks up commits itself.
    """
    checked = Checked({}, {}, [])
    for file in sorted(results.glob("*/machine.json")):
        name = file.parent.name
        try:
            _check_machine(file)
        except ValueError as error:
            checked.problems.append(Problem(f"{name}/{file.name}", str(error)))
            continue
        checked.machines[name] = file
        for path in sorted(file.parent.glob("*.json")):
            if path == file:
                continue
            try:
                checked.results[path] = _sound(read_object(path), name, commits)
            except ValueError as error:
                checked.problems.append(Problem(f"{name}/{path.name}", str(error)))
    return checked


def values(checked: Checked, versions: Mapping[str, str]) -> Iterator[Value]:
    """The numbers in the sound files, by commit, for the choice of a machine.

    ``versions`` are the current versions of the benchmarks, by name. A number of another version
    was measured by an older method.
    """
    for path, result in checked.results.items():
        machine = path.parent.name
        # A file without any number is a result, too.
        yield Value(machine, result.commit_hash, None, False, False)
        for name, line in result.results.items():
            row = dict(zip(result.result_columns, line, strict=False))
            newest = row.get("version") == versions.get(name)
            numbers = row.get("result")
            points = itertools.product(*(row.get("params") or []))
            for point, number in zip(points, _as_list(numbers), strict=False):
                if number == number:  # NaN: never measured; None: failed
                    measured = number is not None
                    yield Value(machine, result.commit_hash, (name, point), measured, newest)


def recorded_benchmarks(results: Path) -> dict[str, dict[str, Any]]:
    """The benchmarks that earlier runs recorded, by name.

    Empty if their file is missing or cannot be read.
    """
    try:
        content = read_object(results / BENCHMARKS)
    except ValueError:
        return {}
    return {name: one for name, one in content.items() if isinstance(one, dict)}


def add_workloads(benchmarks: dict[str, Any], results: Iterable[Result]) -> bool:
    """Append the workloads of the results to the first axes of ``benchmarks``, sorted.

    ``benchmarks`` is the content of benchmarks.json. True if there was anything to add.
    """
    missing: dict[str, set[str]] = {}
    for name, axes in _axes_of(results):
        here = _axes(benchmarks.get(name))
        if axes and here:
            missing.setdefault(name, set()).update(set(axes[0]) - set(here[0]))
    added = {name: sorted(values) for name, values in missing.items() if values}
    for name, values in added.items():
        first, *others = benchmarks[name]["params"]
        benchmarks[name]["params"] = [[*first, *values], *others]
    return bool(added)


def keep_measured(benchmarks: dict[str, Any], results: Iterable[Result]) -> bool:
    """Remove from the axes of ``benchmarks`` what no result has.

    ASV keeps a value for each place of the grid of the axes, in memory and in its files, whether it
    was measured or not. A benchmark without results keeps its axes. True if there was anything to
    remove.
    """
    found: dict[str, list[set[str]]] = {}
    for name, axes in _axes_of(results):
        here = _axes(benchmarks.get(name))
        if here and len(here) == len(axes):
            known = found.setdefault(name, [set() for _ in here])
            for values, measured in zip(known, axes, strict=True):
                values.update(measured)
    removed = False
    for name, known in found.items():
        before = benchmarks[name]["params"]
        kept = [
            [value for value in axis if value in measured] or axis
            for axis, measured in zip(before, known, strict=True)
        ]
        removed |= kept != before
        benchmarks[name]["params"] = kept
    return removed


def _axes_of(results: Iterable[Result]) -> Iterator[tuple[str, list[list[str]]]]:
    """The axes of each benchmark with a value, result by result."""
    for result in results:
        for name, line in result.results.items():
            axes = dict(zip(result.result_columns, line, strict=False)).get("params")
            if axes:
                yield name, axes


def _axes(benchmark: Any) -> list[list[str]]:
    """The axes of a benchmark; empty for what is no benchmark with axes."""
    try:
        return msgspec.convert(benchmark, _Axes).params
    except msgspec.ValidationError:
        return []


class _Axes(msgspec.Struct):
    params: list[list[Name]]


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object in ``file``. Raises ValueError with a message of one line."""
    try:
        return _object(regular.read_own(file, _MOST_BYTES))
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None


def _object(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    return content


def _as_list(numbers: Any) -> list[Any]:
    return numbers if isinstance(numbers, list) else [numbers]


def _check_machine(file: Path) -> None:
    content = _of_known_version(descriptions.read(file.parent).fields)
    if content.get("version") != 1:
        raise ValueError(f"the version of the file is {content.get('version')!r}, not 1")
    # ASV uses the other fields as parameters of graphs.
    for key, value in content.items():
        if key != "version" and not isinstance(value, str):
            raise ValueError(f"{key} must be text")


def result(data: bytes, machine: str, commits: Container[str] | None) -> Result:
    """The content of a result file. Raises ValueError, in one line, where ASV would fail."""
    return _sound(_object(data), machine, commits)


def _sound(written: dict[str, Any], machine: str, commits: Container[str] | None) -> Result:
    content = msgspec.convert(_of_known_version(written), Result)
    if content.params.get("machine") != machine:
        raise ValueError(f"its machine is {content.params.get('machine')!r}")
    # What becomes the name of a file, or is printed.
    texts = (content.env_name, content.python, *content.params, *content.results)
    for text in (*texts, *filter(None, content.params.values())):
        check_text(text)
    if commits is not None and content.commit_hash not in commits:
        raise ValueError(f"commit {content.commit_hash[:8]} is not in the ledger")
    for name, line in content.results.items():
        for column, value in zip(content.result_columns, line, strict=False):
            _check_value(name, column, value)
    return content


# What the suite itself reads of a line: samples of ten thousand cells would fill the memory.
_KEPT = ("result", "params", "version")


def without_samples(content: Result) -> Result:
    """The content, which has the columns of `_KEPT` only from now on."""
    for name, line in content.results.items():
        row = dict(zip(content.result_columns, line, strict=False))
        content.results[name] = [row.get(column) for column in _KEPT]
    content.result_columns = list(_KEPT)
    return content


def _check_value(name: str, column: str, value: Any) -> None:
    shape: Any = Numbers if column.startswith("stats_") else _COLUMNS.get(column)
    if shape is None:
        raise ValueError(f"unknown column {column!r}")
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {column}: {error}") from None
    if column != "result":
        return
    for number in _as_list(value):
        if number is not None and abs(number) > LARGEST:
            raise ValueError(f"{name}: {number} is larger than anything that is measured")


def _of_known_version(content: Mapping[str, Any]) -> Mapping[str, Any]:
    version = content.get("version")
    if isinstance(version, int) and version > 2:
        raise ValueError(f"written by a newer ASV (version {version})")
    return content
