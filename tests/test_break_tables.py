"""PyTorch's tables of graph breaks: read from the tags of a clone, and compared exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torchcompile_suite import workloads
from torchcompile_suite.analysis import break_tables, claims
from torchcompile_suite.analysis.claims import Verdict
from torchcompile_suite.cell import Cell
from torchcompile_suite.compiled import Compiled, GraphBreak
from torchcompile_suite.measurement import Measurement, Outcome, Status
from torchcompile_suite.releases import catalogue

from . import examples
from .conftest import ROOT

CLAIM = "timm-graph-breaks-are-pytorchs"


@pytest.fixture(autouse=True)
def tables(break_lines: Path) -> Path:
    """Invented lines in place of PyTorch's."""
    return break_lines


def captured(
    workload: str, breaks: int | None, torch: str = "2.9.1+cpu", **axes: object
) -> Measurement:
    """The measurement of a cell with that many graph breaks; None for a failed one."""
    made = examples.measurement(workload)
    cell = Cell(workload, 1, "default", **axes)  # type: ignore[arg-type]
    if breaks is None:
        failed = examples.measurement(outcome=Outcome(Status.CRASH, "it fell"))
        return msgspec.structs.replace(failed, cell=cell)
    listed = [GraphBreak("why", f"m.py:{number}") for number in range(breaks)]
    launches = [
        msgspec.structs.replace(one, environment=examples.environment(torch))
        for one in made.launches
    ]
    compiled = Compiled(graphs=breaks + 1, graph_breaks=listed)
    launches[0] = msgspec.structs.replace(launches[0], compiled=compiled)
    return msgspec.structs.replace(made, cell=cell, launches=launches)


def judged(*measurements: Measurement) -> claims.Judged:
    return next(one for one in claims.judge(measurements) if one.claim.id == CLAIM)


def test_each_line_is_of_a_release_and_of_a_workload() -> None:
    """The lines that the package has, not the invented ones."""
    lines = break_tables.read(Path(break_tables.__file__).with_name("break_tables.csv"))
    known = {release.version for release in catalogue.read()}
    assert lines
    for (release, table, workload), line in lines.items():
        name, _, commit = line.table.partition("@")
        assert release in known if not commit else not release
        assert table in break_tables.TABLES
        assert table == name
        assert workloads.get(workload).family == "timm"


def test_a_cpu_is_compared_with_the_cpus_table_and_a_gpu_never() -> None:
    cpu, cuda = (break_tables.expected("2.9.1", "mobilenetv2_100", d) for d in ("cpu", "cuda"))
    assert cpu is not None
    assert cuda is not None
    assert (cpu.table, cuda.table) == break_tables.TABLES[:2]
    only_cuda = break_tables.expected("2.9.1", "ghostnet_100", "cpu")
    assert only_cuda is not None
    assert only_cuda.table == break_tables.TABLE
    assert break_tables.expected("2.9.1", "resnet18", "cpu") is None
    assert break_tables.expected("9.9.9", "mobilenetv2_100", "cpu") is None


@pytest.mark.parametrize(
    ("breaks", "equal", "verdict"),
    [(0, True, Verdict.CONFIRMED), (1, False, Verdict.CONTRADICTED)],
)
def test_the_number_is_compared_exactly(breaks: int, equal: bool, verdict: Verdict) -> None:
    measurement = captured("mobilenetv2_100", breaks)
    compared = break_tables.compared("2.9.1", measurement)
    assert compared is not None
    assert compared.equal is equal
    found = judged(measurement, captured("resnet18", 3))
    assert found.verdict is verdict
    assert ("mobilenetv2_100: 1 here, 0 there" in found.reason) is (not equal)


def test_what_was_not_captured_is_no_difference() -> None:
    compared = break_tables.compared("2.9.1", captured("mobilenetv2_100", None))
    assert compared is not None
    assert compared.equal is None
    assert compared.reason == "crash: it fell"
    assert judged(captured("mobilenetv2_100", None)).verdict is Verdict.NOT_MEASURABLE
    assert "was measured" in judged(captured("resnet18", 0)).reason


@pytest.mark.parametrize("axes", [{"phase": "training"}, {"dtype": "bfloat16"}])
def test_other_cells_are_not_compared(axes: dict[str, Any]) -> None:
    assert break_tables.compared("2.9.1", captured("mobilenetv2_100", 0, **axes)) is None


def git(folder: Path, *arguments: str) -> None:
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    identity |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, env={**os.environ, **identity}
    )


SCRIPT = """
import sys
from pathlib import Path
from evidence import break_tables
from torchcompile_suite.releases import catalogue
break_tables.FILE = Path(sys.argv.pop())
newest = catalogue.read()[-1:]
catalogue.read = lambda: newest
break_tables.main()
"""


def made(source: Path, file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *options, str(source), str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tables_are_read_at_the_tag_of_a_release(tmp_path: Path) -> None:
    """A clone with one table. The newest state of the branch is another one than the tag's."""
    tables = tmp_path / "clone" / "benchmarks" / "dynamo" / "ci_expected_accuracy"
    tables.mkdir(parents=True)
    git(tmp_path / "clone", "init", "--quiet", "--initial-branch", "main")
    head = "name,accuracy,graph_breaks\n\n\n\n"
    for breaks in (2, 5):
        (tables / break_tables.TABLE).write_text(
            f"{head}mobilenetv2_100,pass,{breaks}\n\n\n\n"
            f"deit_base_distilled_patch16_224,fail_to_run,0\n\n\n\nsomebody_elses,pass,1\n"
            "ghostnet_100,pass,\n"
        )
        git(tmp_path / "clone", "add", ".")
        git(tmp_path / "clone", "commit", "--quiet", "-m", "tables")
        if breaks == 2:
            git(tmp_path / "clone", "tag", catalogue.read()[-1].tag)
    file = tmp_path / "made.csv"
    done = made(tmp_path / "clone" / ".git", file)
    assert done.returncode == 0, done.stderr
    assert "has no cpu_inductor_timm_inference.csv" in done.stderr
    version = catalogue.read()[-1].version
    assert [line for line in file.read_text().splitlines() if not line.startswith("#")] == [
        ",".join(break_tables.COLUMNS),
        f"{version},inductor_timm_inference.csv,mobilenetv2_100,mobilenetv2_100,pass,2",
        f"{version},inductor_timm_inference.csv,deit_base_distilled,"
        "deit_base_distilled_patch16_224,fail_to_run,0",
    ]


def test_copies_are_of_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every release is compared with the last copy, if it has no table of its own."""
    name = f"{break_tables.TABLE}@{{}}".format
    for commit, breaks in (("a" * 40, 4), ("b" * 40, 2)):
        (tmp_path / name(commit)).write_text(
            f"name,accuracy,graph_breaks\nconvnextv2_nano.fcmae,pass,{breaks}\nnobodys,pass,0\n"
        )
    file = tmp_path / "made.csv"
    done = made(tmp_path, file, "--copies")
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr(break_tables, "FILE", file)
    for release in ("2.4.1", "2.15.0"):
        line = break_tables.expected(release, "convnextv2_nano", "cpu")
        assert line == break_tables.Expected(name("b" * 12), "convnextv2_nano.fcmae", "pass", 2)


def test_a_folder_without_copies_is_one_line(tmp_path: Path) -> None:
    done = made(tmp_path, tmp_path / "made.csv", "--copies")
    assert done.returncode == 1
    assert "has no file with a name such as" in done.stderr
    assert not (tmp_path / "made.csv").exists()


def test_a_clone_without_the_tag_is_one_line(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    done = made(tmp_path / ".git", tmp_path / "made.csv")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("fetch the tags of PyTorch")
    assert not (tmp_path / "made.csv").exists()
