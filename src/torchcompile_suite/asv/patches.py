"""What is still changed inside ASV: one table, applied once, to the ASV that was tested.

A class of ours does the rest, where ASV has a place for it (environment.py, repository.py, the
publisher in publish.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

from asv import results, util
from asv.benchmarks import Benchmarks
from asv.commands import find as find_command
from asv.commands import run as run_command
from asv.commands.compare import Compare
from asv.commands.publish import Publish
from asv.commands.run import Run
from asv.commands.show import Show
from asv.machine import Machine

from . import axes, machine, publish, reading, runner
from .errors import user_errors

TESTED = "0.6.6"


class Patch(NamedTuple):
    """A replaced function: ``wrap`` gets the original and returns the replacement.

    ``issue``: what ASV would need so that we would not replace it.
    """

    owner: Any
    name: str
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    reason: str
    issue: str

    def __str__(self) -> str:
        """The name with its module or class."""
        return f"{self.owner.__name__}.{self.name}"


PATCHES = (
    Patch(
        run_command,
        "run_benchmarks",
        runner.run_benchmarks,
        "measures each cell once, in processes of its own",
        "Let a plugin provide what runs a benchmark: some are not measured by calling a function.",
    ),
    Patch(
        find_command,
        "run_benchmarks",
        runner.run_benchmarks,
        "the same for `asv find`, which has a name of its own for it",
        "As above.",
    ),
    Patch(
        Run,
        "run",
        runner.run,
        "the core without --bench, --skip-existing and --interleave-rounds cell by cell",
        "A hook before a run, when its commits and options are known.",
    ),
    Patch(
        Benchmarks,
        "discover",
        axes.discover,
        "in this Python; the workloads of earlier runs stay on the axes",
        "Discover benchmarks in the running interpreter where they import nothing of the project.",
    ),
    Patch(
        Compare,
        "run",
        reading.compare,
        "chooses the machine, reads sound files, prints measured rows only",
        "`asv compare` prints a row for each parameter that neither commit has; skip them.",
    ),
    Patch(
        Show,
        "run",
        reading.show,
        "chooses the machine, reads sound files, prints measured cells only",
        "`asv show` prints a row for each parameter without a result; skip them.",
    ),
    Patch(
        Publish,
        "run",
        publish.publish,
        "makes ASV's files of the records, and says what is left out",
        "A hook before `asv publish` reads results.",
    ),
    Patch(
        results,
        "iter_results_paths",
        publish.sorted_paths,
        "what is published is the same everywhere",
        "Sort the files of results: the order of the disk decides on the order in graphs.",
    ),
    Patch(
        Machine,
        "load",
        machine.load,
        "a stable identity instead of questions",
        "Let a plugin describe the machine; no questions where it does.",
    ),
)


def apply() -> None:
    """Replace every function of the table. Raises ASV's UserError where ASV is another one.

    What the suite raises in them becomes an error of ASV's, in one line.
    """
    installed = metadata.version("asv")
    if installed != TESTED:
        raise util.UserError(
            f"asv {installed} is not the version that torchcompile-suite was tested with; install "
            f"the tested one: pip install asv=={TESTED}"
        )
    for patch in PATCHES:
        original = inspect.getattr_static(patch.owner, patch.name)
        kind = type(original) if isinstance(original, classmethod | staticmethod) else None
        function = original.__func__ if kind else original
        replacement: Any = functools.wraps(function)(user_errors()(patch.wrap(function)))
        setattr(patch.owner, patch.name, kind(replacement) if kind else replacement)
