"""Environments of releases: which are there, which fit, and what a killed installation leaves."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from packaging.version import Version

from torchcompile_suite.cli import history
from torchcompile_suite.cli.releases import app
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import (
    catalogue,
    drivers,
    environments,
    extras,
    install,
    ledger,
    locking,
    room,
    stamp,
)

PYTHON = "3.11"
RELEASES = [catalogue.find(name) for name in ("v2.4.1", "v2.6.0", "v2.9.1", "v2.12.1", "v2.15.0")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path / "releases"))
    return tmp_path / "releases"


class Uv:
    """Stands for the installation of gigabytes. It can be killed, or fill the disk."""

    def __init__(self) -> None:
        self.installed: list[str] = []
        self.killed = self.full = False

    def __call__(
        self, release: catalogue.Release, folder: Path, python: str | None = None
    ) -> tuple[Path, str]:
        program = environments.python_in(folder)
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch()
        if self.killed:
            raise KeyboardInterrupt
        if self.full:
            raise install.LockError("the disk is full")
        self.installed.append(release.version)
        return program, f"torch {release.version}"


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch) -> Uv:
    made = Uv()
    monkeypatch.setattr(environments, "install", made)
    return made


def test_an_environment_is_made_once_and_releases_lie_side_by_side(uv: Uv, folder: Path) -> None:
    pythons = [environments.ready(release, PYTHON) for release in RELEASES[:2] * 2]
    assert uv.installed == ["2.4.1", "2.6.0"]
    assert pythons[:2] == pythons[2:]
    assert pythons[0] == folder / "2.4.1-py3.11" / "bin" / "python"
    assert all(environments.is_ready(release, PYTHON) for release in RELEASES[:2])
    assert not environments.is_ready(RELEASES[2], PYTHON)
    assert not environments.is_ready(RELEASES[0], "3.10"), "another Python, another environment"


def test_a_killed_installation_is_not_ready(uv: Uv) -> None:
    uv.killed = True
    with pytest.raises(KeyboardInterrupt):
        environments.ready(RELEASES[0], PYTHON)
    assert not environments.is_ready(RELEASES[0], PYTHON)
    uv.killed = False
    environments.ready(RELEASES[0], PYTHON)
    assert uv.installed == ["2.4.1"]


def test_a_full_disk_at_the_fifth_environment_keeps_the_others(uv: Uv) -> None:
    for release in RELEASES[:4]:
        environments.ready(release, PYTHON)
    uv.full = True
    with pytest.raises(install.LockError, match="disk is full"):
        environments.ready(RELEASES[4], PYTHON)
    assert [environments.is_ready(one, PYTHON) for one in RELEASES] == [True] * 4 + [False]
    uv.full = False
    for release in RELEASES:
        environments.ready(release, PYTHON)
    assert uv.installed == [release.version for release in RELEASES], "each of them once"


def test_an_environment_of_another_lock_is_installed_again(
    uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments.ready(RELEASES[0], PYTHON)
    monkeypatch.setattr(environments, "digest", lambda release: f"another {release.version}")
    environments.ready(RELEASES[0], PYTHON)
    assert uv.installed == ["2.4.1"] * 2


def test_an_environment_from_before_the_extras_gets_them_and_takes_no_room(
    uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stamp is the digest of the lock alone. Nothing of it is missing but a small package."""
    with_extras, without = catalogue.find("2.9.1"), catalogue.find("2.4.1")
    monkeypatch.setattr(
        extras, "pins", lambda release: ["torchao==0.15.0"] if release == "2.9.1" else []
    )
    for release in (with_extras, without):
        environments.ready(release, PYTHON)
        file = environments.folder_of(release, PYTHON) / stamp.FILE
        content = ledger.release_file(release) + ledger.lock_file(release)
        file.write_text(hashlib.sha256(content).hexdigest())
    assert not environments.is_ready(with_extras, PYTHON)
    assert environments.is_ready(without, PYTHON), "what has no extras is as it was"
    _with_free(monkeypatch, 0)
    assert room.groups([with_extras, without], PYTHON) == [[with_extras, without]]
    uv.installed.clear()
    environments.ready(with_extras, PYTHON)
    environments.ready(without, PYTHON)
    assert uv.installed == [with_extras.version]
    assert environments.is_ready(with_extras, PYTHON)


def test_an_extra_of_every_release_is_one_of_nightlies_too() -> None:
    assert set(extras.of("2.16.0.dev20261101")) == {"nvidia-ml-py"}
    assert set(extras.of("2.9.1")) == {"nvidia-ml-py", "torchao"}


def test_a_driver_that_is_too_old_is_told_before_anything_is_installed(
    uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(release: catalogue.Release, device: str | None) -> None:
        raise SuiteError(f"the driver is too old for {release.version} on {device}")

    monkeypatch.setattr(drivers, "check", refuse)
    with pytest.raises(SuiteError, match=r"2\.4\.1 on cuda"):
        environments.ready(RELEASES[0], PYTHON, "cuda")
    assert uv.installed == []


def test_other_extras_are_installed_again(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    environments.ready(RELEASES[2], PYTHON)
    monkeypatch.setattr(extras, "pins", lambda release: ["torchao==9"])
    assert not environments.is_ready(RELEASES[2], PYTHON)
    assert environments.holds_lock(RELEASES[2], PYTHON)
    monkeypatch.setattr(extras, "pins", lambda release: [])
    assert not environments.is_ready(RELEASES[2], PYTHON), "one that is gone must be removed"


def test_extras_are_of_known_releases_and_no_lock_has_them() -> None:
    """What torchao itself says: 0.18 needs 2.11, and each older one was built for one release."""
    known = {release.version: release for release in catalogue.read()}
    for package, versions in extras.read().items():
        assert set(versions) <= {*known, extras.EVERY}
        for version in known.keys() if extras.EVERY in versions else versions:
            pinned = extras.of(version)[package]
            assert locking.PIN.fullmatch(f"{package}=={pinned}")
            assert f"\n{package}==" not in known[version].lock.read_text("utf-8")
            if package == "torchao" and Version(pinned) >= Version("0.17.0"):
                assert Version(version) >= Version("2.11.0")


def _with_free(monkeypatch: pytest.MonkeyPatch, environments_that_fit: int) -> None:
    """A disk with room for so many releases, which are all of one size here."""
    size = 7_000_000_000
    free = environments_that_fit * size + room.SPARE_BYTES
    monkeypatch.setattr(environments, "free_bytes", lambda: free)
    monkeypatch.setattr(room, "needed_bytes", lambda releases: size * len(releases))


@pytest.mark.parametrize(
    ("fit", "expected"),
    [
        (5, [["2.4", "2.6", "2.9", "2.12", "2.15"]]),
        (3, [["2.4", "2.6"], ["2.9", "2.12", "2.15"]]),
        (4, [["2.4", "2.6"], ["2.9", "2.12", "2.15"]]),
        (2, [["2.4"], ["2.6", "2.9"], ["2.12", "2.15"]]),
    ],
)
def test_releases_that_do_not_fit_together_are_measured_in_groups(
    monkeypatch: pytest.MonkeyPatch, fit: int, expected: list[list[str]]
) -> None:
    _with_free(monkeypatch, fit)
    groups = room.groups(RELEASES, PYTHON)
    assert [[release.minor for release in group] for group in groups] == expected


def test_an_interrupted_history_goes_on_with_its_groups(
    uv: Uv, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environments take less room than foreseen, so that another call would make larger groups."""
    removed: list[str] = []
    monkeypatch.setattr(room, "remove", lambda release, python: removed.append(release.version))
    environments.ready(RELEASES[1], PYTHON)
    _with_free(monkeypatch, 2)
    groups = room.groups(RELEASES, PYTHON)
    assert groups == [RELEASES[:1], RELEASES[1:3], RELEASES[3:]]
    for release in groups[0]:
        environments.ready(release, PYTHON)
    _with_free(monkeypatch, 4)
    assert room.groups(RELEASES, PYTHON) == groups
    assert len(room.groups(RELEASES[1:], PYTHON)) == 1, "another history"
    assert len(room.groups(RELEASES, PYTHON, "other cells")) == 1, "another history"
    for left in (groups[1:], groups[2:]):
        room.finished(RELEASES, PYTHON)
        assert room.groups(RELEASES, PYTHON) == left
    wanted = [release.version for group in groups[:2] for release in group]
    assert removed == [version for version in wanted if version != RELEASES[1].version]
    room.finished(RELEASES, PYTHON)
    assert not list(folder.glob("groups-*"))
    assert len(room.groups(RELEASES, PYTHON)) == 1


def test_a_machine_without_space_is_not_refused_for_ever(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look whether releases fit leaves nothing: a plan of groups would outlive the lack."""
    _with_free(monkeypatch, len(RELEASES) - 1)
    assert not room.fit_together(RELEASES, PYTHON)
    assert not list(folder.glob("groups-*"))
    _with_free(monkeypatch, len(RELEASES))
    assert room.fit_together(RELEASES, PYTHON)


def test_damaged_groups_are_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_free(monkeypatch, 3)
    groups = room.groups(RELEASES, PYTHON)
    (kept,) = folder.glob("groups-*")
    kept.write_bytes(b"{}")
    assert room.groups(RELEASES, PYTHON) == groups


def test_a_group_never_misses_more_than_fits(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases that are installed make no room for the others of another group."""
    for release in RELEASES[3:]:
        environments.ready(release, PYTHON)
    _with_free(monkeypatch, 2)
    groups = room.groups(RELEASES, PYTHON)
    assert [len(group) for group in groups] == [2, 3]


def test_releases_that_no_python_runs_together_are_measured_apart() -> None:
    newer = msgspec.structs.replace(RELEASES[-1], pythons=("3.12", "3.13"))
    assert history.by_python([*RELEASES[:2], newer], PYTHON) == {
        PYTHON: RELEASES[:2],
        "3.12": [newer],
    }
    assert history.by_python(RELEASES, PYTHON) == {PYTHON: RELEASES}


def test_installed_releases_need_no_room(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_free(monkeypatch, 0)
    for release in RELEASES[:3]:
        environments.ready(release, PYTHON)
    assert room.groups(RELEASES[:3], PYTHON) == [RELEASES[:3]]
    assert room.line(RELEASES[:3], PYTHON) == "3 of 3 releases are installed"


def test_a_full_disk_is_said_with_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_free(monkeypatch, 1)
    with pytest.raises(SuiteError, match=r"need up to 35 GB, and 9 GB are free; two have") as error:
        room.groups(RELEASES, PYTHON)
    assert "releases remove" in str(error.value)
    assert "\n" not in str(error.value)


def test_list_and_remove(uv: Uv, folder: Path, tmp_path: Path) -> None:
    for release in RELEASES[:2]:
        environments.ready(release, PYTHON)
    cached = tmp_path / "cached"
    cached.write_bytes(b"x" * 5000)
    os.link(cached, folder / "2.4.1-py3.11" / "linked")
    found = {one.name: one for one in environments.installed()}
    assert list(found) == ["2.4.1-py3.11", "2.6.0-py3.11"]
    assert found["2.4.1-py3.11"].linked_bytes == 5000
    assert found["2.6.0-py3.11"].linked_bytes == 0
    listed = CliRunner().invoke(app, ["installed"])
    assert "2.4.1-py3.11" in listed.stdout
    environments.remove(RELEASES[0])
    assert [one.name for one in environments.installed()] == ["2.6.0-py3.11"]
    assert cached.exists()


def test_only_the_environment_of_a_python_is_removed(uv: Uv, folder: Path) -> None:
    """A history in groups keeps those of other Pythons: they are made again with gigabytes."""
    for python in ("3.11", "3.12"):
        environments.ready(RELEASES[0], python)
    environments.remove(RELEASES[0], "3.11")
    assert [one.name for one in environments.installed()] == ["2.4.1-py3.12"]


def test_an_unknown_release_is_not_removed() -> None:
    done = CliRunner().invoke(app, ["remove", "v2.99"])
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1


def test_what_a_kill_left_of_an_environment_is_made_anew(folder: Path) -> None:
    """uv refuses a folder that is no environment and is not empty."""
    place = environments.folder_of(RELEASES[-1], PYTHON)
    place.mkdir(parents=True)
    (place / "half").touch()
    environments._create(RELEASES[-1], place, None)
    assert environments.python_in(place).exists()
    assert not (place / "half").exists()
