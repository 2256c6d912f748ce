"""What is still changed inside ASV: one table, applied once, and checked against the installed ASV.

A class of ours does the rest, where ASV has a place for it (environment.py, repository.py, the
publisher in publish.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
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
from asv.environment import Environment
from asv.machine import Machine
from asv.plugins.git import Git
from asv.plugins.virtualenv import Virtualenv

from . import axes, machine, publish, reading, runner

TESTED = "0.6.6"


class Needed(NamedTuple):
    """A function of ASV that the suite calls, overrides or replaces, and its parameters."""

    owner: Any
    name: str
    parameters: str

    def __str__(self) -> str:
        """The name with its module or class."""
        return f"{self.owner.__name__}.{self.name}"


class Patch(NamedTuple):
    """A replaced function: ``wrap`` gets the original and returns the replacement.

    ``issue``: what ASV would need so that we would not replace it.
    """

    target: Needed
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    reason: str
    issue: str


_RUN_BENCHMARKS = (
    "benchmarks env results show_stderr quick profile extra_params record_samples append_samples "
    "run_rounds launch_method"
)
_RUN = (
    "cls conf range_spec steps date_period bench attribute parallel show_stderr quick profile "
    "env_spec set_commit_hash dry_run machine _machine_file skip_successful skip_failed "
    "skip_existing_commits record_samples append_samples pull interleave_rounds launch_method "
    "durations _returns"
)
_COMPARE = "cls conf hash_1 hash_2 factor split only_changed sort machine env_spec use_stats"
_PRINT_TABLE = (
    "cls conf hash_1 hash_2 factor split resultset_1 resultset_2 machine only_changed sort "
    "use_stats env_names commit_names"
)
_LOAD_MACHINE = "cls interactive force_interactive _path machine_name use_defaults kwargs"

PATCHES = (
    Patch(
        Needed(run_command, "run_benchmarks", _RUN_BENCHMARKS),
        runner.run_benchmarks,
        "measures each cell once, in processes of its own",
        "Let a plugin provide what runs a benchmark: some are not measured by calling a function.",
    ),
    Patch(
        Needed(find_command, "run_benchmarks", _RUN_BENCHMARKS),
        runner.run_benchmarks,
        "the same for `asv find`, which has a name of its own for it",
        "As above.",
    ),
    Patch(
        Needed(Run, "run", _RUN),
        runner.run,
        "the core without --bench, --skip-existing and --interleave-rounds cell by cell",
        "A hook before a run, when its commits and options are known.",
    ),
    Patch(
        Needed(Benchmarks, "discover", "cls conf repo environments commit_hash regex check"),
        axes.discover,
        "in this Python; the workloads of earlier runs stay on the axes",
        "Discover benchmarks in the running interpreter where they import nothing of the project.",
    ),
    Patch(
        Needed(Compare, "run", _COMPARE),
        reading.compare,
        "chooses the machine, reads sound files, prints measured rows only",
        "`asv compare` prints a row for each parameter that neither commit has; skip them.",
    ),
    Patch(
        Needed(Show, "run", "cls conf commit bench machine env_spec details durations"),
        reading.show,
        "chooses the machine, reads sound files, prints measured cells only",
        "`asv show` prints a row for each parameter without a result; skip them.",
    ),
    Patch(
        Needed(Publish, "run", "cls conf range_spec pull"),
        publish.publish,
        "makes ASV's files of the records, and says what is left out",
        "A hook before `asv publish` reads results.",
    ),
    Patch(
        Needed(results, "iter_results_paths", "results"),
        publish.sorted_paths,
        "what is published is the same everywhere",
        "Sort the files of results: the order of the disk decides on the order in graphs.",
    ),
    Patch(
        Needed(Machine, "load", _LOAD_MACHINE),
        machine.load,
        "a stable identity instead of questions",
        "Let a plugin describe the machine; no questions where it does.",
    ),
)

# What the subclasses call or override.
NEEDED = (
    Needed(Compare, "print_table", _PRINT_TABLE),
    Needed(Environment, "create", "self"),
    Needed(Environment, "install_project", "self conf repo commit_hash"),
    Needed(Environment, "_get_installed_commit_hash", "self"),
    Needed(Environment, "_set_commit_hash", "self commit_hash"),
    Needed(Environment, "_set_build_dirs", "self build_dir cache_dir"),
    Needed(Environment, "_set_installed_commit_hash", "self commit_hash"),
    Needed(Virtualenv, "__init__", "self conf python requirements tagged_env_vars"),
    Needed(Virtualenv, "_install_requirements", "self"),
    Needed(Git, "__init__", "self url mirror_path"),
    Needed(Git, "url_match", "cls url"),
)


def apply() -> None:
    """Replace every function of the table. Raises ASV's UserError where ASV is another one."""
    check((*(patch.target for patch in PATCHES), *NEEDED))
    for patch in PATCHES:
        owner, name = patch.target.owner, patch.target.name
        original = inspect.getattr_static(owner, name)
        function = _function(original)
        replacement: Any = functools.wraps(function)(patch.wrap(function))
        if isinstance(original, classmethod | staticmethod):
            replacement = type(original)(replacement)
        setattr(owner, name, replacement)


def check(needed: Iterable[Needed]) -> None:
    """Compare the parameters of each function with those that the suite was tested with.

    Raises ASV's UserError, in one line.
    """
    for one in needed:
        original = inspect.getattr_static(one.owner, one.name, None)
        if original is None:
            now = "is missing"
        else:
            parameters = " ".join(inspect.signature(_function(original)).parameters)
            if parameters == one.parameters:
                continue
            now = f"takes ({parameters})"
        raise util.UserError(
            f"asv {metadata.version('asv')} is not the version that torchcompile-suite was tested "
            f"with: {one} {now}; install the tested one: pip install asv=={TESTED}"
        )


def _function(attribute: Any) -> Callable[..., Any]:
    """The function behind a class method or static method."""
    if isinstance(attribute, classmethod | staticmethod):
        return attribute.__func__
    return attribute  # type: ignore[no-any-return]
