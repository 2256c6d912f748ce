"""Imports run one way, benchmarks are light, and only the plugin knows ASV."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

PACKAGE = ROOT / "src" / "torchcompile_suite"

# What each module of the package may import from it, beside itself. docs say why; see DESIGN.
ALLOWED: dict[str, set[str]] = {
    # For whoever calls the suite from Python, and only when asked for.
    "__init__": {"trial"},
    "__main__": {"cli", "errors"},
    "cell": set(),
    "errors": set(),
    "files": set(),
    "machine": {"errors", "files"},
    "modes": set(),
    "workloads": {"errors"},
    "statistics": {"cell"},
    "matrix": {"cell", "modes", "workloads"},
    "allocators": set(),
    "elsewhere": set(),
    "laid": {"cell"},
    "launch": {
        "",
        "allocators",
        "cell",
        "errors",
        "laid",
        "machine",
        "modes",
        "progress",
        "statistics",
        "workloads",
    },
    "processes": {"cell", "files", "launch"},
    "records": {"cell", "files"},
    "progress": {"cell", "statistics"},
    "session": {
        "allocators",
        "cell",
        "modes",
        "errors",
        "files",
        "laid",
        "launch",
        "machine",
        "processes",
        "progress",
        "records",
        "statistics",
        "workloads",
    },
    "findings": {"cell", "errors", "matrix", "modes", "records", "statistics", "workloads"},
    "site": {
        "cell",
        "errors",
        "findings",
        "matrix",
        "modes",
        "records",
        "releases",
        "report",
        "statistics",
    },
    "report": {"cell", "findings", "statistics", "terminal"},
    "opening": {"cell", "elsewhere", "errors", "releases"},
    "releases": {"errors", "files", "terminal"},
    "terminal": {"errors"},
    "asv_command": {"errors"},
    "asv_results": {"records"},
    "bench": {"asv_command", "machine", "releases", "session"},
    "series": {
        "asv_command",
        "cell",
        "errors",
        "machine",
        "matrix",
        "modes",
        "records",
        "releases",
        "session",
        "statistics",
    },
    "doctor": {"allocators", "launch", "machine", "releases", "session", "terminal"},
    "commits": {
        "cell",
        "elsewhere",
        "errors",
        "files",
        "findings",
        "laid",
        "machine",
        "matrix",
        "modes",
        "processes",
        "releases",
        "session",
        "statistics",
        "terminal",
        "workloads",
    },
    "trial": {
        "allocators",
        "cell",
        "elsewhere",
        "errors",
        "files",
        "findings",
        "launch",
        "machine",
        "matrix",
        "modes",
        "processes",
        "progress",
        "records",
        "releases",
        "report",
        "session",
        "terminal",
        "workloads",
    },
    "cli": {
        "",
        "bench",
        "cell",
        "commits",
        "doctor",
        "errors",
        "findings",
        "machine",
        "matrix",
        "modes",
        "opening",
        "records",
        "releases",
        "report",
        "series",
        "terminal",
        "trial",
        "workloads",
    },
    "asv_plugin": {
        "asv_results",
        "commits",
        "errors",
        "files",
        "machine",
        "matrix",
        "progress",
        "records",
        "releases",
        "session",
        "site",
        "workloads",
    },
}


def imports(file: Path) -> set[str]:
    """Absolute names of everything a file imports, at any depth of it."""
    package = file.relative_to(ROOT / "src").with_suffix("").parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = ".".join(base + ([node.module] if node.module else []))
            found |= {f"{stem}.{alias.name}" for alias in node.names}
    return found


def room(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_run_one_way(file: Path) -> None:
    here = room(file)
    for name in imports(file):
        parts = name.split(".")
        if parts[0] != "torchcompile_suite":
            continue
        rooms = {found.stem if found.is_file() else found.name for found in PACKAGE.iterdir()}
        there = parts[1] if len(parts) > 1 and parts[1] in rooms else ""
        assert there == here or there in ALLOWED[here], f"{file.name} imports {name}"


def test_only_the_plugin_imports_asv() -> None:
    importers = {
        room(file) for file in FILES if any(name.split(".")[0] == "asv" for name in imports(file))
    }
    assert importers == {"asv_plugin"}


def test_only_launches_import_torch_at_module_level() -> None:
    for file in FILES:
        if room(file) == "launch":
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import):
                assert all(
                    alias.name.split(".")[0] not in {"torch", "timm"} for alias in node.names
                )
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert (node.module or "").split(".")[0] not in {"torch", "timm"}


def test_a_look_up_imports_nothing_heavy() -> None:
    """ASV starts a process for each value: SciPy alone would be a tenth of a second each."""
    code = (
        "import sys; sys.argv = ['x']; import benchmarks.inference;"
        "print([name for name in ('torch', 'scipy', 'timm') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
