"""What quietens the machine? The spread between launches under each setting, in turns.

All launches are fresh processes, because half of the settings must be there from a process's start.
Takes about fifty minutes; leave the machine alone meanwhile.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from torchcompile_suite.analysis import change
from torchcompile_suite.cell import Launch
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import allocators
from torchcompile_suite.host.files import read_lines

from .collect import Job, Pool, Setting
from .pools import CELLS, NO_VECTOR_CHECK, POOLS, run_in_release

LAUNCHES = 10
FOLDER = POOLS.with_name("pools-quiet")
NAMES = ("transformer", "pointwise")
FIGURES = ("time ratio", "compiled")
AS_IT_IS = "as it is"
TCMALLOC = allocators.preload("tcmalloc")
# mallopt(3): nothing is given back to the kernel, so a call meets the pages of the one before.
WARM_PAGES = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}
SETTINGS = {
    AS_IT_IS: Setting(),
    "threads bound to cores": Setting({"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}),
    "warm pages": Setting(WARM_PAGES),
    "no huge pages": Setting(huge_pages=False),
    "malloc in huge pages": Setting({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
    "tcmalloc": Setting({"LD_PRELOAD": TCMALLOC[0]}),
    "priority (nice -20)": Setting(nice=-20),
    "5 s of rest before": Setting(rest_s=5.0),
}


def main() -> None:
    """Collect, and print the table."""
    if TCMALLOC[1]:
        raise SuiteError(TCMALLOC[1])
    run_in_release(
        Job(
            [
                Pool(_file(name, way), CELLS[name], fresh=LAUNCHES, setting=setting)
                for name in NAMES
                for way, setting in SETTINGS.items()
            ],
            str(FOLDER),
            variables=NO_VECTOR_CHECK,
        )
    )
    table = Table(title=f"{LAUNCHES} launches under each setting, in turns")
    for column in ("cell", "setting"):
        table.add_column(column)
    for column in (
        "ratio",
        "sd of ratio",
        "(MAD)",
        "same spread, p",
        "ratio over as it is",
        "ms",
        "sd of latency",
        "time over as it is",
    ):
        table.add_column(column, justify="right")
    for name in NAMES:
        plain = logs(name, AS_IT_IS)
        for way in SETTINGS:
            ratio, compiled = found = logs(name, way)
            over = [
                f"{np.exp(mine.mean() - its.mean()):.3f}"
                for mine, its in zip(found, plain, strict=True)
            ]
            mad = stats.median_abs_deviation(ratio, scale="normal")
            table.add_row(
                name,
                way,
                f"{np.exp(ratio.mean()):.3f}",
                f"{ratio.std(ddof=1):.1%}",
                f"{mad:.1%}",
                f"{same_spread(ratio, plain[0]):.2f}",
                over[0],
                f"{1e3 * np.exp(compiled.mean()):.3g}",
                f"{compiled.std(ddof=1):.1%}",
                over[1],
            )
    Console(width=150).print(table)


def logs(name: str, way: str) -> list[np.ndarray]:
    """The logs of each of `FIGURES`, a value a launch, of a cell under a setting."""
    launches = read_lines(FOLDER / f"{_file(name, way)}.jsonl", Launch)
    return [np.log(change.values(figure, launches)) for figure in FIGURES]


def same_spread(one: np.ndarray, other: np.ndarray) -> float:
    """How probable such a difference of spreads is where there is none (Brown and Forsythe 1974,
    which a few outliers do not fool).
    """
    return float(stats.levene(one, other, center="median").pvalue)


def _file(name: str, way: str) -> str:
    return f"{name}-{list(SETTINGS).index(way)}"


if __name__ == "__main__":
    main()
