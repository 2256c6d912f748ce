"""Which settings make the machine quieter? The spread between launches under each setting.

The settings take turns. All launches are fresh processes, because half of the settings must apply
from the start of a process. Takes about fifty minutes; leave the machine alone meanwhile.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from torchcompile_suite.analysis import change
from torchcompile_suite.cell import Launch
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import allocators
from torchcompile_suite.host.files import read_lines
from torchcompile_suite.presentation.sheets import Sheet

from . import tables
from .collect import Job, Pool, Setting
from .pools import CELLS, NO_VECTOR_CHECK, POOLS, run_in_release

LAUNCHES = 10
FOLDER = POOLS.with_name("pools-quiet")
NAMES = ("transformer", "pointwise")
FIGURES = ("time ratio", "compiled")
AS_IT_IS = "as it is"
TCMALLOC = allocators.preload("tcmalloc")
# mallopt(3): malloc returns nothing to the kernel, so a call uses the pages of the call before.
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


def measure() -> None:
    """Fill the pools."""
    if TCMALLOC[1]:
        raise SuiteError(TCMALLOC[1])
    run_in_release(
        Job(
            [
                Pool(_file(name, setting), CELLS[name], fresh=LAUNCHES, setting=SETTINGS[setting])
                for name in NAMES
                for setting in SETTINGS
            ],
            str(FOLDER),
            variables=NO_VECTOR_CHECK,
        )
    )


def table() -> list[tables.Part]:
    """A line for each cell and setting."""
    names = [
        "ratio",
        "sd of ratio",
        "(MAD)",
        "same spread, p",
        "ratio over as it is",
        "compiled ms",
        "sd of compiled",
        "compiled over as it is",
    ]
    lines = []
    for name in NAMES:
        plain = logs(name, AS_IT_IS)
        for setting in SETTINGS:
            ratio, compiled = figures = logs(name, setting)
            over = [
                f"{np.exp(values.mean() - before.mean()):.3f}"
                for values, before in zip(figures, plain, strict=True)
            ]
            mad = stats.median_abs_deviation(ratio, scale="normal")
            lines.append(
                [
                    name,
                    setting,
                    f"{np.exp(ratio.mean()):.3f}",
                    f"{ratio.std(ddof=1):.1%}",
                    f"{mad:.1%}",
                    f"{same_spread(ratio, plain[0]):.2f}",
                    over[0],
                    f"{1e3 * np.exp(compiled.mean()):.3g}",
                    f"{compiled.std(ddof=1):.1%}",
                    over[1],
                ]
            )
    return [
        f"{LAUNCHES} launches under each setting, in turns. sd: standard deviation of the logs "
        "between launches; p: that the spread is the same as with nothing done.",
        Sheet(["pool", "setting", *names], frozenset(names), lines),
        tables.measured_on(
            launch for name in NAMES for setting in SETTINGS for launch in _kept(name, setting)
        ),
    ]


def logs(name: str, setting: str) -> list[np.ndarray]:
    """The logs of each of `FIGURES`, one value a launch, of a cell under a setting."""
    launches = _kept(name, setting)
    return [np.log(change.values(figure, launches)) for figure in FIGURES]


def same_spread(one: np.ndarray, other: np.ndarray) -> float:
    """The p value of equal spreads (Brown and Forsythe 1974, robust against a few outliers)."""
    return float(stats.levene(one, other, center="median").pvalue)


def _kept(name: str, setting: str) -> list[Launch]:
    return read_lines(FOLDER / f"{_file(name, setting)}.jsonl", Launch)


def _file(name: str, setting: str) -> str:
    return f"{name}-{list(SETTINGS).index(setting)}"


if __name__ == "__main__":
    tables.run("quiet", table, measure)
