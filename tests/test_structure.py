"""Rules of imports that the contracts in pyproject.toml cannot express."""

from __future__ import annotations

import ast
import subprocess
import sys

from .conftest import ROOT

PACKAGE = ROOT / "src" / "torchcompile_suite"

FILES = sorted(PACKAGE.rglob("*.py"))

# Modules of classes that are saved by name.
PRIVATE = {file.stem for file in (PACKAGE / "workloads").glob("_[a-z]*.py")}
# Only a measuring process imports these.
MEASURING = ("launch", *(f"workloads/{name}.py" for name in PRIVATE))


def test_only_launches_import_torch_at_module_level() -> None:
    for file in FILES:
        if file.relative_to(PACKAGE).as_posix().startswith(MEASURING):
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import):
                assert all(
                    alias.name.split(".")[0] not in {"torch", "timm"} for alias in node.names
                )
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert (node.module or "").split(".")[0] not in {"torch", "timm"}


def test_a_module_of_classes_is_imported_where_a_workload_is_built() -> None:
    """Its file imports torch, and the workloads are read by processes that have none."""
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names)]
                parts = {part for name in names for part in name.split(".")}
                assert not parts & PRIVATE, file


def test_a_benchmark_imports_nothing_heavy() -> None:
    """ASV imports the benchmarks to discover them, and for each page: no torch is needed there."""
    code = (
        "import sys; sys.argv = ['x']; import benchmarks.inference;"
        "print([name for name in ('torch', 'scipy', 'timm') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
