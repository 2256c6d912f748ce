"""What ASV prints of a benchmark: a line for each cell that was asked for, and no other.

ASV itself draws the whole grid of parameters: 2,700 lines for four cells.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from asv import util
from asv.results import Results
from asv_runner.statistics import get_err

# What asv_runner writes before the traceback of one place.
_BLOCK = re.compile(r"^For parameters: (.*)\n", re.MULTILINE)
# The exception of benchmarks/_base.py for a cell whose outcome is not ok.
_OUTCOME = "benchmarks._base._Failed: "

# The places that this run measures, by benchmark: ASV does not pass its selection to what prints.
_selection: dict[str, list[int] | None] = {}


def select(selection: Mapping[str, list[int] | None]) -> None:
    """Set the places on the axes that `of_run` prints."""
    _selection.clear()
    _selection.update(selection)


def of_run(original: Callable[..., Any]) -> Callable[..., Any]:
    """`format_benchmark_result`, for the places that this run measures."""
    return _formatter(original, lambda name, _: _selection.get(name))


def of_show(original: Callable[..., Any]) -> Callable[..., Any]:
    """`format_benchmark_result`, for the places that were measured."""
    return _formatter(
        original,
        lambda _, values: [place for place, value in enumerate(values) if not _is_missing(value)],
    )


def get_result_value(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Results.get_result_value`, which tells "never measured" (NaN) from "failed" (None).

    ASV returns None for both. Then a new workload would make every older release "n/56 failed" as
    soon as one more of its cells is measured.
    """

    def get_result_value(self: Results, key: str, params: Any) -> Any:
        values = original(self, key, params)
        known = set(itertools.product(*self.get_result_params(key)))
        return [
            math.nan if value is None and point not in known else value
            for value, point in zip(values, itertools.product(*params), strict=True)
        ]

    return get_result_value


def _formatter(
    original: Callable[..., Any], places: Callable[[str, list[Any]], Iterable[int] | None]
) -> Callable[..., Any]:
    def format_benchmark_result(results: Results, benchmark: dict[str, Any]) -> tuple[Any, Any]:
        if not benchmark["params"]:
            return original(results, benchmark)  # type: ignore[no-any-return]
        name = benchmark["name"]
        values = results.get_result_value(name, benchmark["params"])
        stats = results.get_result_stats(name, benchmark["params"])
        points = list(itertools.product(*benchmark["params"]))
        chosen = places(name, values)
        reasons = _take_reasons(results, name)
        lines, failed = [], 0
        for place in range(len(points)) if chosen is None else chosen:
            value, stat = values[place], stats[place]
            shown = util.human_value(
                value, benchmark["unit"], err=get_err(value, stat) if stat else None
            )
            if value is None and (reason := reasons.get(", ".join(points[place]))):
                shown += f": {reason}"
            lines.append(f"{', '.join(map(_plain, points[place]))}: {shown}")
            failed += value is None
        info = f"{failed}/{len(lines)} failed" if failed else "ok" if lines else "n/a"
        return info, "\n".join(lines)

    return format_benchmark_result


def _take_reasons(results: Results, name: str) -> dict[str, str]:
    """Why the places of a benchmark failed, by parameters.

    A failed cell is a recorded outcome. Its traceback only repeats the reason, so it is removed
    from what ``--show-stderr`` prints.
    """
    head, *blocks = _BLOCK.split(results.stderr.get(name) or "")
    reasons, kept = {}, head
    for params, traceback in zip(blocks[::2], blocks[1::2], strict=True):
        last = (traceback.strip().splitlines() or [""])[-1]
        reasons[params] = last.removeprefix(_OUTCOME)
        if not last.startswith(_OUTCOME):
            kept += f"For parameters: {params}\n{traceback}"
    results.stderr[name] = kept.strip()
    return reasons


def _is_missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _plain(value: str) -> str:
    """A parameter as ASV prints it: text without its quotes."""
    return value[1:-1] if len(value) > 2 and value[0] == value[-1] == "'" else value
