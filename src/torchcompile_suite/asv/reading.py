"""`asv compare` and `asv show`: the choice of the machine, and rows of measured values only."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from asv import util
from asv.commands.compare import Compare
from asv.commands.show import Show
from asv.console import log
from asv.repo import NoSuchNameError, get_repo
from asv.results import Results, iter_results_for_machine_and_hash
from asv_runner.console import color_print
from asv_runner.statistics import get_err

from ..analysis import summaries
from ..errors import SuiteError
from ..host import machine
from ..measurement import METHOD
from ..presentation.wording import plural, printable
from ..results import machines, records
from ..results.records import Record
from .command import ROWS_VARIABLE
from .staging import Staged, staged

# What `asv compare` shows unless it is asked for something else.
_FIRST = r"^(inference|training)\."


def _rows_asked() -> re.Pattern[str]:
    """The pattern of the rows that the user wants. Raises SuiteError."""
    pattern = os.environ.get(ROWS_VARIABLE, _FIRST)
    try:
        return re.compile(pattern)
    except re.error as error:
        raise SuiteError(f"{ROWS_VARIABLE}={pattern!r} is no regular expression: {error}") from None


def compare(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Compare.run`, which needs no option where several machines have results."""

    def run(_cls: type[Compare], conf: Any, hash_1: str, hash_2: str, **options: Any) -> Any:
        with staged(conf) as stage:
            names = (hash_1, hash_2)
            options["machine"] = _machine(conf, stage, names, options.get("machine"))
            return original(_MeasuredRows, conf, hash_1, hash_2, **options)

    return run


def show(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Show.run`, which shows a commit on one machine. Without a commit it lists all machines."""

    def run(_cls: type[Show], conf: Any, commit: str | None = None, **options: Any) -> Any:
        with staged(conf) as stage:
            named = options.get("machine")
            if commit is not None or named is not None:
                names = [commit] if commit is not None else []
                options["machine"] = _machine(conf, stage, names, named, current=True)
            return original(_MeasuredCells(), conf, commit, **options)

    return run


def _machine(
    conf: Any,
    stage: Staged,
    names: Sequence[str],
    named: str | None,
    *,
    current: bool = False,
) -> str:
    """The machine to show; says on standard error why, and which of its files are left out.

    ``current`` counts only values of the current version of the benchmarks: ``asv show`` has no
    others.
    """
    shown = list(_records(stage, current))
    choice = machines.choose(
        shown,
        _commits(conf, names),
        here=machine.shown_first(),
        named=named,
        known=stage.machines,
        labels=names,
    )
    log.flush()
    if choice.line:
        print(printable(choice.line), file=sys.stderr)
    if current and not any(record.machine == choice.machine for record in shown):
        print(
            f"{printable(choice.machine)} has no results of the current version of the benchmarks, "
            "and asv show has no others; see: asv compare, torchcompile-suite report",
            file=sys.stderr,
        )
    for problem in stage.problems:
        if problem.where.startswith(f"{choice.machine}/"):
            print(printable(f"left out: {problem}"), file=sys.stderr)
    return choice.machine


def _records(stage: Staged, current: bool) -> Iterator[Record]:
    """The records that the result files are made of, by commit; see `_machine`."""
    found = summaries.read(stage.results)
    for record in (*found.records, *found.generated, *found.divided):
        timed = [launch for launch in record.measurement.launches if launch.timed]
        older = any(launch.method != METHOD for launch in timed)
        staged = record.machine in stage.machines and record.env_name != records.TRIAL
        if staged and not (current and older):
            yield record._replace(release=record.commit)


def _commits(conf: Any, names: Sequence[str]) -> list[str]:
    """The commits of those names, as in records. Raises SuiteError for a name that the repository
    lacks.
    """
    repo = get_repo(conf)
    try:
        return [repo.get_hash_from_name(name)[: records.COMMIT_DIGITS] for name in names]
    except NoSuchNameError as error:
        raise SuiteError(
            f"there is no release, tag or commit {error.args[0]!r}; see: torchcompile-suite "
            "releases list"
        ) from None


class _MeasuredCells:
    """Prints a line for each measured cell of a benchmark, and for no other.

    ASV itself draws the whole grid of parameters. It is no subclass of `Show`, because ASV makes a
    command of each subclass.
    """

    def __getattr__(self, name: str) -> Any:
        function = inspect.getattr_static(Show, name)
        return function.__func__.__get__(self)

    def _print_benchmark(
        self, machine_name: str, result: Results, benchmark: Any, show_details: bool = False
    ) -> None:
        name = benchmark["name"]
        axes = result.get_result_params(name)
        if show_details or not axes:
            Show._print_benchmark(machine_name, result, {**benchmark, "params": axes}, show_details)
            return
        color_print(f"{name} [{machine_name}/{result.env_name}]", "green")
        values = result.get_result_value(name, axes)
        stats = result.get_result_stats(name, axes)
        lines, failed = [], 0
        for point, value, stat in zip(itertools.product(*axes), values, stats, strict=True):
            if value == value:  # no NaN, which stands for a cell that was not measured
                lines.append(shown(point, value, stat, benchmark["unit"]))
                failed += value is None
        color_print(f"  {summed_up(len(lines), failed)}", "red")
        color_print("".join(f"  {line}\n" for line in lines))


def shown(point: Sequence[str], value: Any, stat: Any, unit: str) -> str:
    """A cell in a line. ``value``: None for a failure."""
    error = get_err(value, stat) if stat else None
    return f"{', '.join(map(_plain, point))}: {util.human_value(value, unit, err=error)}"


def summed_up(cells: int, failed: int) -> str:
    """What ASV prints behind the name of a benchmark."""
    return f"{failed}/{cells} failed" if failed else "ok" if cells else "n/a"


def _plain(value: str) -> str:
    """A parameter as ASV prints it: text without its quotes."""
    return value[1:-1] if len(value) > 2 and value[0] == value[-1] == "'" else value


class _MeasuredRows:
    """Prints the table of `Compare` without the rows of cells that one side has not measured, or
    that failed on both: inference and training, or what `ROWS_VARIABLE` asks for.

    It is no subclass of `Compare`, because ASV makes a command of each subclass.
    """

    @staticmethod
    def print_table(conf: Any, hash_1: str, hash_2: str, *arguments: Any, **options: Any) -> Any:
        """Pass ASV the values to show only: it prints a row for each value that it gets."""
        machine_name, env_names = options.get("machine"), options.get("env_names")
        sides: list[dict[Any, tuple[Any, ...]]] = []
        for commit in (hash_1, hash_2):
            results = iter_results_for_machine_and_hash(conf.results_dir, machine_name, commit)
            sides.append(
                {
                    (name, *row[-2:]): row
                    for result in results
                    if env_names is None or result.env_name in env_names
                    for name, row in _rows(result)
                }
            )
        both = [
            place
            for place, row in sides[0].items()
            if place in sides[1] and (row[2], sides[1][place][2]) != ([None], [None])
        ]
        if not both and all(sides):
            print("No cell has results of both, of which one is a number: nothing to compare.")
            return False, False  # nothing is worse, nothing is better
        asked = _rows_asked()
        wanted = [place for place in both if asked.search(place[0])]
        if both and not wanted and os.environ.get(ROWS_VARIABLE):
            print(f"No row that both have matches {ROWS_VARIABLE}={asked.pattern!r}.")
            return False, False
        wanted = wanted or both
        options |= {
            # Of an empty side ASV says so.
            f"resultset_{number}": [side[place] for place in wanted or side]
            for number, side in enumerate(sides, 1)
        }
        made = Compare.print_table(conf, hash_1, hash_2, *arguments, **options)
        left = len({*sides[0], *sides[1]}) - len(wanted)
        names = " ".join(options["commit_names"].get(one) or one[:8] for one in (hash_1, hash_2))
        print(
            f"\nLeft out: {plural(left, 'row')} of other benchmarks, or without two numbers; rows "
            f"by a pattern:\n  {ROWS_VARIABLE}=. asv compare {names}\n"
            f"Only what changed: --only-changed. What of it is noise: torchcompile-suite report "
            f"{names}"
        )
        return made


def _rows(result: Results) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The measured and the failed values of a result, each with its name, in ASV's form for
    `Compare.print_table`.
    """
    for key in result.get_all_result_keys():
        params = result.get_result_params(key)
        points = itertools.product(*params)
        columns = (
            result.get_result_value(key, params),
            result.get_result_stats(key, params),
            result.get_result_samples(key, params),
        )
        for point, value, stats, samples in zip(points, *columns, strict=True):
            if value is not None and value != value:  # NaN: not measured
                continue
            row = (
                key,
                [[one] for one in point],
                [value],
                [stats],
                [samples],
                result.benchmark_version.get(key),
                result.params["machine"],
                result.env_name,
            )
            yield f"{key}({', '.join(point)})", row
