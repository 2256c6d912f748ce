"""Make the suite's copy of PyTorch's tables of graph breaks: the lines of models that it has.

    python -m evidence.break_tables

From ``pytorch_tables/expected.csv.xz``, which has all lines of all tables that could be read. The
result is src/torchcompile_suite/analysis/break_tables.csv.
"""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Iterator
from pathlib import Path

from torchcompile_suite import workloads
from torchcompile_suite.analysis.break_tables import COLUMNS, DYNAMIC, FILE, TABLES
from torchcompile_suite.host.files import write_atomically

SOURCE = Path(__file__).parent / "pytorch_tables" / "expected.csv.xz"
# Of the tables -> ours. Those of 2.4.0 are the tag's before 2.4.1.
RELEASES = {"2.4.0": "2.4.1", "2.6.0": "2.6.0", "2.9.1": "2.9.1"}
# The newest table with PyTorch's shorter list of timm models. A copy is of no release.
COPY = "copy-2026-06"
# Models of transformers: only the release whose runs had a version that breaks where 4.57.3 does,
# which the suite has. Their runs have labels, ours do not: DistillGPT2 breaks in its loss.
TRANSFORMERS, WITH_LABELS = "2.9.1", ("DistillGPT2",)
# Accuracies of models that were not run: their number is 0.
NOT_RUN = ("pass_due_to_skip", "model_fail_to_load")
# Of the commit of a copy.
DIGITS = 12
HEAD = """\
# What PyTorch's CI expects of models: lines of benchmarks/dynamo/ci_expected_accuracy of
# https://github.com/pytorch/pytorch for a release, or without a release those of a public copy
# (table@commit). "workload" is the name of the model in this suite.
# Made by: python -m evidence.break_tables
"""


def source() -> Iterator[dict[str, str]]:
    """All lines of PyTorch's tables: release, commit, file, name, accuracy, graph_breaks."""
    with lzma.open(SOURCE, "rt", encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def lines() -> Iterator[list[str]]:
    """The lines whose model is a workload."""
    names = _workloads()
    for row in source():
        table, release = f"{row['file']}.csv", RELEASES.get(row["release"], "")
        if table not in TABLES or row["accuracy"] in NOT_RUN:
            continue
        if row["release"] != COPY if table.startswith(DYNAMIC) else not release:
            continue
        if "huggingface" in table and (release != TRANSFORMERS or row["name"] in WITH_LABELS):
            continue
        # What follows a point names the weights.
        if workload := names.get(row["name"].partition(".")[0]):
            of = table if release else f"{table}@{row['commit'][:DIGITS]}"
            yield [release, of, workload, row["name"], row["accuracy"], row["graph_breaks"]]


def _workloads() -> dict[str, str]:
    """timm's name and the dashboard's -> the workload."""
    known = {
        name: name for name in workloads.names() if workloads.get(name).family in ("timm", "hf")
    }
    # Not before: the import registers the workloads of the file, and their order is fixed.
    from torchcompile_suite.workloads.timm_models import NAMES_IN_TIMM

    return known | {timms: name for name, timms in NAMES_IN_TIMM.items()}


def main() -> None:
    """Write the file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(lines())
    write_atomically(FILE, (HEAD + text.getvalue()).encode())


if __name__ == "__main__":
    main()
