"""What lies apart in the environment of a release: really installed by uv, as a small library."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchcompile_suite import workloads
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import launches
from torchcompile_suite.engine.launches import Refused
from torchcompile_suite.engine.processes import of_release
from torchcompile_suite.engine.series import Series
from torchcompile_suite.engine.settings import Settings
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.fleet import inspection
from torchcompile_suite.releases import apart, catalogue, environments, locking, stamp
from torchcompile_suite.releases.apart import Library

OLD, NEW = Library(("idna==3.9",), ("idna.core",)), Library(("idna==3.10",), ("idna.core",))
SAY = "import sys; sys.path[:0] = sys.argv[1:]; import idna; print(idna.__version__)"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """That of an empty environment with the stamp of a release."""
    folder = tmp_path / "env"
    command = [sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable]
    subprocess.run([*command, str(folder)], check=True)
    (folder / stamp.FILE).write_text(environments.digest(catalogue.find("2.9.1")))
    return folder / "bin" / "python"


def pinned(monkeypatch: pytest.MonkeyPatch, library: Library, name: str = "idna") -> None:
    monkeypatch.setattr(apart, "read", lambda: {name: library})
    apart._fault.cache_clear()


def imported(python: Path, *folders: Path) -> str:
    done = subprocess.run([python, "-c", SAY, *folders], capture_output=True, text=True)
    return done.stdout.strip()


def test_an_environment_gets_the_folder_once_and_stays_as_it_is(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = python.parent.parent
    before, place = stamp.read(prefix), stamp.apart("idna", prefix)
    pinned(monkeypatch, OLD)
    apart.provide(python, ["timm"])
    assert not place.exists(), "nobody needs it yet"
    apart.provide(python, ["timm", "idna"])
    assert imported(python) == "", "others do not find it"
    assert imported(python, place) == "3.9"
    made = place.stat().st_ino
    apart._fault.cache_clear()
    apart.provide(python, ["idna"])
    assert place.stat().st_ino == made
    shutil.rmtree(place)
    place.with_name(apart.PINS).unlink()
    apart.provide(python, ["idna"])
    assert imported(python, place) == "3.9", "somebody removed it"
    pinned(monkeypatch, NEW)
    apart.provide(python, ["idna"])
    assert imported(python, place) == "3.10"
    assert stamp.read(prefix) == before
    assert not [one for one in prefix.iterdir() if one.name.startswith(".apart")]


@pytest.mark.parametrize(
    ("library", "says"),
    [
        (Library(("idna==0.0.99",), ()), "uv could not install idna==0.0.99; uv says: "),
        (
            Library(("idna==3.10",), ("idna.core", "jinja2")),
            "idna==3.10 does not import in .*: ModuleNotFoundError: No module named 'jinja2'",
        ),
    ],
)
def test_a_failure_is_one_line_and_leaves_what_was_there(
    python: Path, monkeypatch: pytest.MonkeyPatch, library: Library, says: str
) -> None:
    pinned(monkeypatch, OLD)
    apart.provide(python, ["idna"])
    pinned(monkeypatch, library)
    for _ in range(2):
        with pytest.raises(SuiteError, match=says) as caught:
            apart.provide(python, ["idna"])
        assert "\n" not in str(caught.value)
    assert apart._fault.cache_info().misses == 1, "it takes seconds, and many cells ask"
    assert imported(python, stamp.apart("idna", python.parent.parent)) == "3.9"


def test_the_cells_that_need_it_say_why_it_is_missing(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned(monkeypatch, Library(("transformers==0.0.99",), ()), "transformers")
    series = Series.of(Cell("BertForMaskedLM", 1, "default"), [""], Settings())
    with pytest.raises(Refused, match=r"^uv could not install transformers==0\.0\.99; uv says"):
        launches.of_series(of_release(python), series, tmp_path / "cache")


@pytest.mark.parametrize("content", ["", f"{stamp.ADOPTED} 2.9.1+cpu of /somewhere\n"])
def test_an_environment_of_the_users_does_not_change(
    python: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    prefix = python.parent.parent
    (prefix / stamp.FILE).write_text(content)
    pinned(monkeypatch, OLD)
    apart.provide(python, ["idna"])
    assert not stamp.apart("idna", prefix).exists()


def test_a_process_imports_it_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = stamp.apart("anybodys", tmp_path)
    place.mkdir(parents=True)
    (place / "anybodys.py").write_text("import anybodys_own\n")
    (place / "anybodys_own.py").write_text("here = True\n")
    folder = stamp.apart
    monkeypatch.setattr(stamp, "apart", lambda name: folder(name, tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(workloads.WorkloadError, match="torch: pip install nobodys"):
        workloads.library("nobodys")
    # Not by monkeypatch: at its end it would put back what the import adds.
    sys.modules["anybodys_own"] = sys
    with pytest.raises(workloads.WorkloadError, match="has its own anybodys_own, and others"):
        workloads.library("anybodys")
    del sys.modules["anybodys_own"]
    assert workloads.library("anybodys").anybodys_own.here
    assert workloads.library("anybodys") is sys.modules["anybodys"]
    del sys.modules["anybodys"], sys.modules["anybodys_own"]


def test_the_pins_are_exact_and_what_a_lock_has_is_pinned_otherwise() -> None:
    locks = [release.lock.read_text("utf-8").splitlines() for release in catalogue.read()]
    for name, library in apart.read().items():
        assert library.pins[0].startswith(f"{name}==")
        for pin in library.pins:
            assert locking.PIN.fullmatch(pin)
            assert not any(line.partition(" ")[0] == pin for lock in locks for line in lock)


def test_machines_of_a_fleet_have_the_same_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = inspection.locks(["2.9.1"])
    other = tmp_path / "apart.toml"
    other.write_text("")
    monkeypatch.setattr(apart, "FILE", other)
    assert before.keys() == inspection.locks(["2.9.1"]).keys() == {"2.9.1"}
    assert before != inspection.locks(["2.9.1"])
