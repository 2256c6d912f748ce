"""Make the suite's copy of PyTorch's tables of graph breaks: the lines of models that it has.

    python -m evidence.break_tables CLONE
    python -m evidence.break_tables --copies FOLDER

``CLONE`` is a git directory of PyTorch with the tags of the releases. Run it again for a new
release: lines of older releases stay the same, because a tag does.

``FOLDER`` has public copies of the tables, ``TABLE@COMMIT`` each, for those who cannot read the
tags. Their lines are of no release: every release is compared with them.

The result is src/torchcompile_suite/analysis/break_tables.csv.
"""

from __future__ import annotations

import argparse
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
# Of the commit of a copy.
DIGITS = 12
HEAD = f"""\
# What PyTorch's CI expects of timm models: lines of {FOLDER} of
# https://github.com/pytorch/pytorch at the tag of each release (v + release), or without a release
# those of a public copy (table@commit). "workload" is the name of the model in this suite.
# Made by: python -m evidence.break_tables
"""


def main() -> None:
    """Write the file. Says on standard error which tables a release does not have."""
    parser = argparse.ArgumentParser(prog="python -m evidence.break_tables")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("clone", nargs="?", type=Path, help="A git directory of PyTorch.")
    source.add_argument("--copies", type=Path, metavar="FOLDER", help="Copies of its tables.")
    chosen = parser.parse_args()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    try:
        lines = _of_copies(chosen.copies) if chosen.copies else _of_tags(chosen.clone)
        writer.writerows(lines)
    except SuiteError as error:
        raise SystemExit(str(error)) from None
    write_atomically(FILE, (HEAD + text.getvalue()).encode())


def _of_tags(clone: Path) -> Iterator[list[str]]:
    """The lines of all tables at the tags of all releases. Raises SuiteError."""
    for release in catalogue.read():
        for table in TABLES:
            content = _shown(clone, release, f"{FOLDER}/{table}")
            if content is None:
                print(f"{release.tag} has no {table}", file=sys.stderr)
            else:
                yield from _lines(content, release.version, table)


def _of_copies(folder: Path) -> Iterator[list[str]]:
    """The lines of all copies in a folder. Raises SuiteError."""
    copies = [(table, file) for table in TABLES for file in sorted(folder.glob(f"{table}@*"))]
    if not copies:
        raise SuiteError(f"{folder} has no file with a name such as {TABLES[0]}@COMMIT")
    for table, file in copies:
        commit = file.name.rpartition("@")[2]
        yield from _lines(file.read_text("utf-8"), "", f"{table}@{commit[:DIGITS]}")


def _lines(content: str, release: str, table: str) -> Iterator[list[str]]:
    """The lines of one table whose model is a workload."""
    names = _workloads()
    for row in csv.DictReader(filter(str.strip, content.splitlines())):
        # What follows a point names the weights.
        model = row["name"].partition(".")[0]
        # A cell is empty where the run did not end.
        if (workload := names.get(model)) and (breaks := row["graph_breaks"]):
            yield [release, table, workload, row["name"], row["accuracy"], breaks]


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
