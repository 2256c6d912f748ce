"""ASV's results, made from the measurements.

The measurements are the one source of truth: a value of ASV's is what a benchmark returns for a
recorded measurement. `asv run` writes it, and `asv publish`, `compare` and `show` read it, by the
same `fill`. So ASV's files are not committed, they never disagree with the report, and merging
results needs no rule for them.

A file has the places on the axes that were measured, and those that fill up their grid. ASV itself
writes all places: 54,000 for 564 values.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from asv.results import Results, get_filename
from asv.runner import BenchmarkResult
from asv_runner.benchmarks.mark import SkipNotImplemented

from .. import matrix
from ..analysis import summaries
from ..cell import Cell
from ..host import workers
from ..measurement import Measurement
from ..results import cached, descriptions, records, regular
from ..results.cached import Made
from ..results.descriptions import check_text
from ..results.parsing import Problem, Read
from .repository import Commits

Point = tuple[Any, ...]

# The file of results/ in which ASV records what the benchmarks are.
BENCHMARKS = "benchmarks.json"
_MOST_BYTES = 256 << 20

# Larger than any time, count or size. ASV fails when a computation overflows.
LARGEST = 1e30
# Smaller than any of them but 0.
SMALLEST = 1e-30
# The measurements of a release in a thousand cells take some 50 MiB.
_MOST_WORKERS = 8


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


class File(NamedTuple):
    """A result file of ASV's: its path below results/, and its content."""

    path: Path
    content: bytes


def derive(
    results: Path,
    machines: Iterable[Path],
    commits: Commits,
    package: Path,
    problems: list[Problem],
) -> Iterator[File]:
    """ASV's file of each machine, commit and environment with measurements in ``results``.

    - ``machines``: the sound machine.json of each machine.
    - ``commits``: measurements of other ones are a problem.
    - ``package``: the folder of the benchmarks.

    What cannot be read is added to ``problems``.
    """
    recorded = recorded_benchmarks(results)
    names = sorted(name for name in recorded if matrix.find(name) is not None)
    jobs: list[_Job] = []
    for description in machines:
        machine = description.parent
        of_machine, unread = records.files(machine)
        problems += unread
        for journal, of_place in of_machine.items():
            commit, env_name = records.place(journal)
            if env_name == records.TRIAL:
                continue
            try:
                check_text(env_name)
            except ValueError as error:
                problems.append(Problem(f"{machine.name}/{commit}", f"its environment is {error}"))
                continue
            if (found := commits.find(commit)) is None:
                reason = f"its measurements are of no commit of the {commits.where}"
                problems.append(Problem(f"{machine.name}/{commit}", reason))
                continue
            jobs.append(_Job(description, *found, env_name, of_place, names, package))
    made = workers.each(_Job.content, jobs, _MOST_WORKERS)
    for job, (content, unread) in zip(jobs, made, strict=True):
        problems += unread
        if content:
            yield File(job.path, content)


class _Job(NamedTuple):
    """One result file to make."""

    description: Path
    sha: str
    date_ms: int
    env_name: str
    files: list[Path]
    names: list[str]
    package: Path

    @property
    def path(self) -> Path:
        """The path of the file below results/."""
        return Path(get_filename(self.description.parent.name, self.sha, self.env_name))

    def content(self) -> Read[bytes]:
        """The file, from the user's cache or made now; empty if there is no value."""
        problems: list[Problem] = []
        return cached.get("asv", self.key(), partial(self.make, problems)), problems

    def key(self) -> Iterator[str]:
        """All that decides on the content."""
        yield from (
            self.sha,
            str(self.date_ms),
            self.env_name,
            regular.digest(self.description),
        )
        yield cached.version(self.package)
        yield repr([question.axes for question in matrix.QUESTIONS.values()])
        yield " ".join(self.names)
        yield from map(records.identity, self.files)

    def make(self, problems: list[Problem]) -> Made:
        """The file as ASV would write it; empty if there is no value."""
        recorded, bad = read(self.files)
        problems += bad
        results = self._empty(recorded.measured.values())
        fill(results, self.names, self.package, recorded)
        if not results.get_all_result_keys():
            return Made(b"", keep=not bad)
        with tempfile.TemporaryDirectory() as folder:
            results.save(folder)
            (file,) = Path(folder).glob("*/*")
            return Made(file.read_bytes(), keep=not bad)

    def _empty(self, measured: Iterable[Measurement]) -> Results:
        """ASV's results without a value."""
        facts = descriptions.read(self.description.parent).fields
        facts.pop("version", None)
        python = _python(self.env_name, measured)
        params = {**facts, "python": python}
        return Results(params, {}, self.sha, self.date_ms, python, self.env_name, {})


def read(files: Iterable[Path]) -> Read[Recorded]:
    """The newest measurement of each cell in the files of one place, if it counts as now."""
    entries, problems = records.newest_of(summaries.read_files(files))
    return Recorded(filter(records.counted_alike, (one.measurement for one in entries))), problems


def fill(results: Results, names: Iterable[str], package: Path, recorded: Recorded) -> None:
    """Let ASV's results have the values of these benchmarks that are recorded, and no others of
    them. ``package``: the folder of the benchmarks.
    """
    for name in names:
        if name in results.get_all_result_keys():
            results.remove_result(name)
        if (method := method_of(package, name)) is not None:
            _add(results, name, method, recorded)


class Recorded:
    """The measurements that benchmarks ask for.

    ``spent``: the cells whose duration is counted.
    """

    def __init__(self, measured: Iterable[Measurement]) -> None:
        """Nothing is counted yet."""
        self.measured = {matrix.on_any_device(one.cell): one for one in measured}
        self.spent: set[Cell] = set()

    def measure(self, cell: Cell) -> Measurement:
        """The measurement of the cell. Raises KeyError."""
        return self.measured[matrix.on_any_device(cell)]


class Value(NamedTuple):
    """A value in ASV's form. ``number`` is None for a failure; ASV replaces it by that of the
    samples.

    ``method``: by which it was measured (`measurement.METHOD`); 0 if nothing was timed.
    """

    measurement: Measurement
    method: int
    number: int | float | None
    samples: list[int | float] | None = None


def _add(results: Results, name: str, method: Callable[..., Any], recorded: Recorded) -> None:
    """Add the values of one benchmark to ASV's results, if it has any."""
    question = matrix.find(name)
    assert question is not None
    values: dict[Point, Value] = {}
    for cell, measurement in recorded.measured.items():
        for point in question.points_of(cell):
            if (value := value_of(method, recorded, point, measurement)) is not None:
                values[point] = value
    # As in ASV: values of an older method are gone as soon as there is one of a newer method.
    newest = max((value.method for value in values.values()), default=0)
    values = {point: value for point, value in values.items() if value.method in (0, newest)}
    if not values:
        return
    axes = [
        sorted({point[at] for point in values}, key=partial(_place, axis))
        for at, axis in enumerate(question.axes.values())
    ]
    row = [values.get(point) for point in itertools.product(*axes)]
    result = BenchmarkResult(
        [math.nan if value is None else value.number for value in row],
        [value and value.samples for value in row],
        [1 if value is not None and value.samples else None for value in row],
        0,
        "",
        None,
    )
    measured = {value.measurement.cell: value.measurement for value in values.values()}
    # A cell is measured once for all its benchmarks: its seconds count for the first one.
    spent_s = [one.duration_s for cell, one in measured.items() if cell not in recorded.spent]
    recorded.spent.update(measured)
    results.add_result(
        {
            "name": name,
            # Counts are of no method: they have the version of their benchmark.
            "version": str(newest) if newest else method.__self__.version,  # type: ignore[attr-defined]
            "params": [list(map(repr, axis)) for axis in axes],
        },
        result,
        started_at=max(map(_started, measured.values())),
        duration=math.fsum(spent_s),
        record_samples=True,
    )


def value_of(
    method: Callable[..., Any], recorded: Recorded, point: Point, measurement: Measurement
) -> Value | None:
    """What the benchmark returns at a point; None where it has no number by design (n/a)."""
    method.__self__.recorded = recorded  # type: ignore[attr-defined]
    timed_by = measurement.method
    try:
        value = method(*point)
    except SkipNotImplemented:
        return None
    except Exception:
        # A failed cell. A stranger's measurement can make a benchmark fail in any way.
        return Value(measurement, timed_by, None)
    samples = value["samples"] if isinstance(value, dict) else None
    numbers = [value] if samples is None else samples
    # ASV stops at a number that no computation can use.
    if not numbers or not all(one == 0 or SMALLEST <= abs(one) <= LARGEST for one in numbers):
        return None
    return Value(measurement, timed_by, numbers[0], samples)


def _place(axis: Iterable[Any], value: Any) -> tuple[int, str]:
    """The place of a value on an axis; values that are not on it come last."""
    known = list(axis)
    return (known.index(value) if value in known else len(known), str(value))


def method_of(package: Path, name: str) -> Callable[..., Any] | None:
    """The function of a benchmark; None if the package has none of that name."""
    parent = str(package.resolve().parent)
    if parent not in sys.path:
        sys.path.insert(0, parent)
    module, owner, method = name.split(".")
    try:
        instance = getattr(importlib.import_module(f"{package.name}.{module}"), owner)()
    except (ImportError, AttributeError):
        return None  # recorded by another version of the suite
    found: Callable[..., Any] | None = getattr(instance, method, None)
    return found


def _started(measurement: Measurement) -> datetime:
    try:
        started = datetime.fromisoformat(measurement.started_at)
    except ValueError:
        return datetime.fromtimestamp(0, timezone.utc)
    return started if started.tzinfo else started.replace(tzinfo=timezone.utc)


def _python(env_name: str, measured: Iterable[Measurement]) -> str:
    """The minor version of Python: ASV's name of the environment has it, or a measurement."""
    versions = [one.environment.python for one in measured if one.environment]
    for text in (*re.findall(r"-py(.*)", env_name), *versions):
        if found := re.match(r"\d{1,3}\.\d{1,3}", text, re.ASCII):
            return found[0]
    return ""
