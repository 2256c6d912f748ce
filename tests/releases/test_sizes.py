"""What releases take on the disk, known before they are installed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from torchcompile_suite.cli.history import newest_patches
from torchcompile_suite.cli.releases import app
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue, environments, room

from ..conftest import ReleaseEnvironment

PYTHON = "3.11"
HISTORY = newest_patches(catalogue.read())


@pytest.fixture(autouse=True)
def with_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)


def test_the_size_of_every_release_of_a_history_is_known() -> None:
    """If this fails: install the new release, then run torchcompile-suite releases sizes."""
    known = room.read_sizes()
    lacking = {release.version: room.large_pins(release) - known.keys() for release in HISTORY}
    assert not {version: pins for version, pins in lacking.items() if pins}


def test_shared_packages_count_once() -> None:
    """Releases 2.11 to 2.13 have most of CUDA in common."""
    apart = sum(room.needed_bytes([release]) for release in HISTORY)
    together = room.needed_bytes(HISTORY)
    assert together < 0.8 * apart
    assert room.needed_bytes(HISTORY[:1]) < room.needed_bytes(HISTORY[:2]) < together


def test_cpu_builds_take_less(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = room.needed_bytes(HISTORY)
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    assert room.needed_bytes(HISTORY) < 0.8 * usual


def test_a_history_of_all_minor_releases_is_one_group_on_a_usual_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 GB were two groups once, at the size of the largest release for each."""
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(environments, "free_bytes", lambda: 78_000_000_000)
    assert room.groups(HISTORY, PYTHON) == [HISTORY]


def test_a_release_of_unknown_size_counts_as_the_largest() -> None:
    unknown = msgspec.structs.replace(HISTORY[0], version="2.4.0")
    assert not room.large_pins(unknown) <= room.read_sizes().keys()
    largest = max(room.needed_bytes([release]) for release in HISTORY)
    assert room.needed_bytes([unknown]) > largest
    assert room.needed_bytes([unknown, unknown]) == 2 * room.needed_bytes([unknown])


def _package(site_packages: Path, name: str, version: str, listed: str) -> None:
    folder = site_packages / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "RECORD").write_text(listed)


def test_sizes_are_those_that_the_packages_themselves_list(tmp_path: Path) -> None:
    site_packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    mebibytes = 1 << 20
    listed = f'torch/a.so,sha256=x,{3 * mebibytes}\n"torch/b,c.py",sha256=y,1\ntorch/RECORD,,\n'
    _package(site_packages, "torch", "9.1.0", listed)
    _package(site_packages, "nvidia_cublas_cu12", "12.1", f"n/lib.so,sha256=z,{mebibytes}\n")
    _package(site_packages, "triton", "9.0+cpu", f"t/lib.so,sha256=z,{mebibytes}\n")
    _package(site_packages, "sympy", "1.14", f"s/x.py,sha256=z,{mebibytes}\n")
    table = tmp_path / "sizes.toml"
    table.write_text('"torch==2.4.1" = 1552\n"nvidia-cublas-cu12==12.1" = 7\n')
    assert room.record([tmp_path / "env"], table) == ["torch==9.1.0"]
    assert room.read_sizes(table) == {
        "nvidia-cublas-cu12==12.1": 7 << 20,
        "torch==2.4.1": 1552 << 20,
        "torch==9.1.0": 4 << 20,
    }
    assert room.record([tmp_path / "env"], table) == []


def test_a_table_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SuiteError, match=r"cannot write .*sizes\.toml"):
        room.record([], tmp_path / "file" / "sizes.toml")


@pytest.mark.slow
def test_the_table_is_true_for_a_real_environment(newest: ReleaseEnvironment) -> None:
    """With its bytecode and its small packages, too."""
    release = catalogue.find(newest.version)
    found = room.installed_bytes(newest.folder)
    assert found.keys() == room.large_pins(release)
    for pin, size in found.items():
        assert 0 <= room.read_sizes()[pin] - size < 1 << 20, pin
    files = [file.lstat() for file in newest.folder.rglob("*") if file.is_file()]
    taken = sum(file.st_size for file in files)
    assert 0.85 * room.needed_bytes([release]) < taken <= room.needed_bytes([release])


def test_the_command_names_what_it_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(room, "SIZES", tmp_path / "sizes.toml")
    place = tmp_path / "9.1.0-py3.11" / "lib" / "python3.11" / "site-packages"
    _package(place, "torch", "9.1.0", "torch/a.so,sha256=x,1\n")
    for says in ("torch==9.1.0", "nothing new"):
        done = CliRunner().invoke(app, ["sizes"])
        assert done.exit_code == 0, done.output
        assert done.stdout == f"sizes.toml: {says}\n"
