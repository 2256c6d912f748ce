"""Models of strangers: their files are programs, and their modules do what ours never do."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

from torchcompile_suite.measuring import processes
from torchcompile_suite.trial import script

from .conftest import ROOT

# Files that are programs


def loaded(path: Path, then: str = "") -> str:
    """What a new process prints that loads the file as a trial does."""
    code = (
        "from pathlib import Path; from torchcompile_suite.trial import script;"
        f"module = script.load(Path({str(path)!r})); {then}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--an", "argument"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONSAFEPATH": "1"},
        cwd=path.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_sees_a_script_without_arguments(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("import argparse, sys; argparse.ArgumentParser().parse_args(); print(sys.argv)")
    assert loaded(file) == str([str(file)])


def test_a_file_is_imported_once_and_beside_its_siblings(tmp_path: Path) -> None:
    (tmp_path / "sibling.py").write_text("name = 'beside'")
    file = tmp_path / "net.py"
    file.write_text("import sibling; print('imported', __name__, sibling.name)")
    again = f"script.load(Path({str(file)!r})); import net; assert net is module"
    assert loaded(file, again) == "imported net beside"


def test_a_file_may_have_a_name_of_the_standard_library(tmp_path: Path) -> None:
    file = tmp_path / "profile.py"
    file.write_text("print(__name__)")
    assert loaded(file, "import cProfile; print(module.__file__)") == f"profile_py\n{file}"


def test_a_file_of_a_package_may_import_relatively(tmp_path: Path) -> None:
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (tmp_path / "outer" / "parts.py").write_text("size = 3")
    file = package / "net.py"
    file.write_text("from ..parts import size; print(__name__, size)")
    assert loaded(file) == "outer.inner.net 3"


def test_a_file_of_the_current_folder_hides_no_module_before_it_is_imported() -> None:
    variables = script.variables()
    assert variables["PYTHONSAFEPATH"] == "1"
    assert str(Path.cwd()) not in variables["PYTHONPATH"].split(":")[:1]


def chooses_a_start_method() -> bytes:
    multiprocessing.set_start_method("spawn")
    print("chosen")
    return b"chosen"


def test_a_fork_may_choose_a_start_method() -> None:
    assert processes.in_child(chooses_a_start_method, 60.0) == (b"chosen", "")


def fails() -> bytes:
    raise ValueError("no answer")


def test_a_fork_that_fails_says_why() -> None:
    answer, reason = processes.in_child(fails, 60.0)
    assert answer == b""
    assert reason == "exit status 1 without a result: ValueError: no answer"


def waits() -> bytes:
    import time

    time.sleep(60)
    return b""


def test_a_fork_that_takes_too_long_is_ended() -> None:
    assert processes.in_child(waits, 0.1) == (b"", "it took more than 0 s")
