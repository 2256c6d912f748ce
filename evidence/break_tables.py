"""Make the suite's copy of PyTorch's tables of graph breaks: the lines of models that it has.

    python -m evidence.break_tables CLONE

``CLONE`` is a git directory of PyTorch with the tags of the releases. The result is
src/torchcompile_suite/analysis/break_tables.csv. Run it again for a new release: lines of older
releases stay the same, because a tag does.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from torchcompile_suite import workloads
from torchcompile_suite.analysis.break_tables import COLUMNS, FILE, TABLES
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host.files import write_atomically
from torchcompile_suite.releases import catalogue

FOLDER = "benchmarks/dynamo/ci_expected_accuracy"
HEAD = f"""\
# What PyTorch's CI expects of timm models: lines of {FOLDER} of
# https://github.com/pytorch/pytorch at the tag of each release (v + release). "workload" is the
# name of the model in this suite. Made by: python -m evidence.break_tables CLONE
"""


def main() -> None:
    """Write the file. Says on standard error which tables a release does not have."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m evidence.break_tables CLONE_OF_PYTORCH")
    clone = Path(sys.argv[1])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    try:
        for release in catalogue.read():
            for table in TABLES:
                writer.writerows(_lines(clone, release, table))
    except SuiteError as error:
        raise SystemExit(str(error)) from None
    write_atomically(FILE, (HEAD + text.getvalue()).encode())


def _lines(clone: Path, release: catalogue.Release, table: str) -> Iterator[list[str]]:
    """The lines of one table whose model is a workload."""
    content = _shown(clone, release, f"{FOLDER}/{table}")
    if content is None:
        print(f"{release.tag} has no {table}", file=sys.stderr)
        return
    names = _workloads()
    for row in csv.DictReader(filter(str.strip, content.splitlines())):
        # A cell is empty where the run did not end.
        if (workload := names.get(row["name"])) and (breaks := row["graph_breaks"]):
            yield [release.version, table, workload, row["name"], row["accuracy"], breaks]


def _shown(clone: Path, release: catalogue.Release, path: str) -> str | None:
    """A file at the release's tag; None if the tag has no such file. Raises SuiteError."""
    for revision in filter(None, (release.tag, release.git_version)):
        if _git(clone, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").returncode:
            continue
        if not _git(clone, "ls-tree", "--name-only", revision, path).stdout:
            return None
        found = _git(clone, "show", f"{revision}:{path}")
        if found.returncode:
            raise SuiteError(f"{clone} lacks {path} of {revision}: {found.stderr.strip()}")
        return found.stdout
    raise SuiteError(f"{clone} has no {release.tag}; fetch the tags of PyTorch")


def _git(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "--git-dir", str(clone), *arguments], capture_output=True, text=True, check=False
    )


def _workloads() -> dict[str, str]:
    """timm's name and the dashboard's -> the workload."""
    names = [name for name in workloads.names() if workloads.get(name).family == "timm"]
    # Not before: the import registers the workloads of the file, and their order is fixed.
    from torchcompile_suite.workloads.timm_models import NAMES_IN_TIMM

    return {known: name for name in names for known in (name, NAMES_IN_TIMM.get(name, name))}


if __name__ == "__main__":
    main()
