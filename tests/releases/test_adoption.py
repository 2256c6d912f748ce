"""Environments of the user's that stand for a release."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from torchcompile_suite.cell import Cell
from torchcompile_suite.cli.history import by_python
from torchcompile_suite.cli.releases import app
from torchcompile_suite.engine import launches
from torchcompile_suite.engine.processes import Environment
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.measurement import OK
from torchcompile_suite.releases import adoption, catalogue, environments, install, stamp
from torchcompile_suite.request import Request

from ..conftest import BRIEF, ReleaseEnvironment

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path / "releases"))
    return tmp_path / "releases"


def _python(folder: Path, torch: str, commit: str | None) -> Path:
    """A Python whose packages import and do nothing, and whose torch is what it says."""
    packages = folder / "lib" / "site-packages"
    for name in adoption.NEEDED:
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").touch()
    (packages / "torch" / "__init__.py").write_text(
        f"from . import version\n__version__ = {torch!r}\n"
    )
    (packages / "torch" / "version.py").write_text(
        f"__version__ = {torch!r}\ngit_version = {commit!r}\n"
    )
    program = folder / "python"
    # It is used for `-c` and for `-m venv`, as any Python.
    program.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def test_what_cannot_stand_for_a_release_is_refused_in_one_line(
    tmp_path: Path, folder: Path
) -> None:
    with pytest.raises(SuiteError, match=r"missing|does not run as a Python"):
        adoption.adopt(tmp_path / "missing")
    with pytest.raises(SuiteError, match=r"does not import .*torch .*install that there first"):
        adoption.adopt(Path(sys.executable))
    with pytest.raises(SuiteError, match=r"2\.99\.0 is not in the catalogue"):
        adoption.adopt(_python(tmp_path / "a", "2.99.0+cu130", None))
    release = catalogue.find("v2.15")
    other = _python(tmp_path / "b", f"{release.version}+cu130", "0" * 40)
    with pytest.raises(SuiteError, match="built from 00000000"):
        adoption.adopt(other)
    assert not list(folder.glob("*-py*/"))


def test_an_adopted_environment_is_the_release_s_until_it_is_removed(
    tmp_path: Path, folder: Path
) -> None:
    release = catalogue.find("v2.15")
    python = _python(tmp_path / "mine", f"{release.version}+mine", release.git_version)
    answer = CliRunner().invoke(app, ["adopt", str(python)])
    assert answer.exit_code == 0, answer.output
    assert f"asv run -E torch-release:{HERE} v{release.version}^!" in answer.output
    assert environments.is_ready(release, HERE)
    assert environments.holds_lock(release, HERE), "`history` downloads nothing for it"
    assert environments.adopted(release) == HERE
    program = environments.ready(release, HERE)
    assert not stamp.from_a_lock(str(program.parent.parent))
    subprocess.run([program, "-m", "torch.version"], check=True)
    assert not (program.parent.parent / install.MARKER).exists()
    # The user installs another torch there.
    version = tmp_path / "mine" / "lib" / "site-packages" / "torch" / "version.py"
    said = version.read_text()
    version.write_text(said.replace("+mine", "+other"))
    with pytest.raises(SuiteError, match=r"\+mine, and has .*\+other now; adopt it again"):
        environments.ready(release, HERE)
    version.write_text(said)
    # Once more is as good as once.
    assert adoption.adopt(python)[1] == f"{release.version}+mine"
    environments.remove(release)
    assert not environments.is_ready(release, HERE)
    assert python.exists(), "the user's own stays"


def test_an_adoption_that_fails_leaves_nothing_to_the_release_s_own(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next installation empties what has the marker: it would find the user's packages."""
    release = catalogue.find("v2.15")
    python = _python(tmp_path / "mine", release.version, release.git_version)
    ask = adoption._ask

    def lose(program: Path) -> install.Said:
        found = ask(program)
        return found if program == python else msgspec.structs.replace(found, versions={})

    monkeypatch.setattr(adoption, "_ask", lose)
    with pytest.raises(SuiteError, match="do not import in"):
        adoption.adopt(python)
    place = environments.folder_of(release, HERE)
    assert (environments.packages_in(place) / "adopted.pth").exists()
    assert (place / install.MARKER).exists()
    assert not environments.is_ready(release, HERE)


def test_an_environment_from_a_lock_is_not_replaced(tmp_path: Path, folder: Path) -> None:
    release = catalogue.find("v2.15")
    place = environments.folder_of(release, HERE)
    place.mkdir(parents=True)
    (place / stamp.FILE).write_text(environments.digest(release))
    assert stamp.from_a_lock(str(place))
    with pytest.raises(SuiteError, match=f"releases remove v{release.version}"):
        adoption.adopt(_python(tmp_path / "mine", release.version, None))
    assert stamp.from_a_lock(str(place))


def test_a_history_measures_an_adopted_release_with_its_own_python(folder: Path) -> None:
    release = catalogue.find("v2.11")
    place = environments.folder_of(release, "3.13")
    place.mkdir(parents=True)
    (place / stamp.FILE).write_text(f"{stamp.ADOPTED} 2.11.0+cu130 of somewhere\n")
    other = catalogue.find("v2.12")
    assert by_python([release, other], "3.11") == {"3.11": [other], "3.13": [release]}
    assert environments.folder_of(release) == place, "`try --release` finds it, too"
    # One that was adopted later replaces it, whatever its name.
    for python, at in (("3.12", 100), ("3.14", 200)):
        later = environments.folder_of(release, python)
        later.mkdir()
        (later / stamp.FILE).write_text(f"{stamp.ADOPTED} 2.11.0+cu130 of elsewhere\n")
        os.utime(later / stamp.FILE, (at, at))
    os.utime(place / stamp.FILE, (150, 150))
    assert by_python([release], "3.11") == {"3.14": [release]}
    assert environments.folder_of(release).name == "2.11.0-py3.14"


@pytest.mark.slow
def test_a_record_says_that_its_torch_is_not_from_a_lock(
    newest: ReleaseEnvironment, tmp_path: Path, folder: Path
) -> None:
    _, build, program = adoption.adopt(newest.python)
    request = Request(Cell("small_1x1", 1, "eager"), "cold", str(tmp_path / "cache"), BRIEF)
    launch = launches.run(Environment(program), request)
    assert launch.outcome == OK
    assert launch.environment is not None
    assert launch.environment.adopted == build == launch.environment.torch
