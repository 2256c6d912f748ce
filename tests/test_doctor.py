"""The doctor finds faults that affect a measurement: each fault is made for real."""

from __future__ import annotations

import ast
import shutil
import string
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from torchcompile_suite import doctor
from torchcompile_suite.cli.app import app
from torchcompile_suite.doctor import Level, hardware, software
from torchcompile_suite.fleet import inspection
from torchcompile_suite.fleet.messages import Order
from torchcompile_suite.host import processors

from .conftest import ReleaseEnvironment
from .schemas import validated


def found(**changes: Any) -> dict[str, Any]:
    """The probe's description of a Python without faults."""
    versions = {"torch": "2.9.1+cu128", "torchvision": "0.24.1+cu128", "triton": "3.5.1"}
    return {
        "python": "3.11.7",
        "versions": {
            **versions,
            "setuptools": "80.0",
            "timm": "1.0",
            **changes.pop("versions", {}),
        },
        "include": sysconfig.get_path("include"),
        "torch_error": "",
        "cuda_built": "12.8",
        "cuda_available": False,
        "cuda_error": "",
        "gpu": "",
        "torchvision_error": "",
        "triton_error": "",
        "wants_torch": ["torch==2.9.1"],
        "threads": 2,
        **changes,
    }


def test_a_compiler_in_order_is_named() -> None:
    check = software.compiler(found())
    assert check.level is Level.OK
    assert "g++" in check.says


def test_no_compiler_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = software.compiler(found())
    assert check.level is Level.ERROR
    assert "apt-get install g++" in check.remedy


def test_a_compiler_that_is_badly_quoted_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", 'g++ "')
    check = software.compiler(found())
    assert (check.level, check.says) == (Level.ERROR, "CXX: No closing quotation")


@pytest.mark.parametrize(
    ("version", "given", "remedy"),
    [
        ("2.4.1", "g++", ""),
        ("2.4.1", "", "unset CXX"),
        ("2.15.0", " ", "unset CXX"),
        ("2.4.1", "env g++", "one program"),
        ("2.13.1+cpu", " g++", "one program"),
        ("2.13.1+cpu", "{folder}/of mine/g++", ""),
        ("2.14.0", "env g++", ""),
        ("2.15.0", "{folder}/of mine/g++", "apt-get"),
        ("", "env g++", ""),
    ],
)
def test_the_compiler_is_the_one_that_inductor_finds(
    version: str, given: str, remedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Releases before 2.14 take all of CXX as the name of one program."""
    (tmp_path / "of mine").mkdir()
    (tmp_path / "of mine" / "g++").symlink_to(str(shutil.which("g++")))
    monkeypatch.setenv("CXX", given.format(folder=tmp_path))
    check = software.compiler(found(versions={"torch": version}))
    assert check.level is (Level.ERROR if remedy else Level.OK), check
    assert remedy in check.remedy


@pytest.mark.parametrize(("releases", "fits"), [(("2.15.0", "2.4.1"), False), (("2.15.0",), True)])
def test_the_compiler_of_a_fleet_is_that_of_its_oldest_release(
    releases: tuple[str, ...], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "checks", lambda: ())
    monkeypatch.setenv("CXX", "env g++")
    order = Order("box", releases=releases, python=sysconfig.get_python_version())
    faults = {check.name for check in inspection.faults(order, "")}
    assert ("C++ compiler" in faults) != fits


def test_a_user_without_a_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> str:
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr("getpass.getuser", fails)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    first, *_ = software.caches()
    assert (first.name, first.level) == ("user", Level.WARNING)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/tmp")
    assert all(check.level is Level.OK for check in software.caches())


def test_a_compiler_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ -include /nowhere/header.h")
    check = software.compiler(found(versions={"torch": "2.15.0"}))
    assert check.level is Level.ERROR
    assert "header.h" in check.says


def test_what_cannot_be_loaded_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a TMPDIR that is mounted with noexec."""
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\necho no library > "$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    check = software.compiler(found())
    assert check.level is Level.ERROR
    assert "cannot be loaded" in check.says
    assert "noexec" in check.remedy


def test_a_gpu_that_is_not_to_be_measured_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (check,) = software.cuda(found(gpu="H100", cuda_built=""))
    assert check.level is Level.ERROR
    assert not list(software.cuda(found(gpu="H100", torch_error="ImportError: no")))
    monkeypatch.setenv("TORCHCOMPILE_SUITE_DEVICE", "cpu")
    (check,) = software.cuda(found(gpu="H100", cuda_built=""))
    assert check.level is Level.OK


def test_one_thread_of_each_core_shares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, text in {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}.items():
        place = tmp_path / f"cpu{number}" / "topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(text)
    monkeypatch.setattr(processors, "TOPOLOGY", tmp_path)
    monkeypatch.setattr(processors, "allowed", lambda: [0, 1, 2])
    assert hardware.siblings().says.endswith("0, 2")
    monkeypatch.setattr(processors, "allowed", lambda: [0, 1])
    assert hardware.siblings().level is Level.OK


def test_no_headers_is_an_error(tmp_path: Path) -> None:
    check = software.compiler(found(include=str(tmp_path)))
    assert check.level is Level.ERROR
    assert "python3-dev" in check.remedy


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"versions": {"torchvision": "0.20.0"}, "wants_torch": ["torch==2.5.0"]}, "needs torch"),
        ({"versions": {"torch": "2.9.1+cpu"}}, "different builds"),
        ({"torchvision_error": "RuntimeError: no operator nms"}, "no operator nms"),
    ],
)
def test_a_foreign_torchvision_is_an_error(changes: dict[str, Any], said: str) -> None:
    check = software.torchvision(found(**changes))
    assert check.level is Level.ERROR
    assert said in check.says
    assert software.torchvision(found()).level is Level.OK


@pytest.mark.parametrize(
    ("torch", "torchvision", "fits"),
    [
        ("2.9.1+rocm6.4.2.git76481f7c", "0.24.1+rocm6.4.2.git4040d51f", True),
        ("2.9.1+rocm6.4.2.git76481f7c", "0.24.1+rocm7.1", False),
        ("2.9.1+cpu.cxx11.abi", "0.24.1+cpu", True),
        ("2.9.1a0+git5811a8d", "0.24.1a0+d801a34", True),
        ("2.9.1", "0.24.1+cu128", True),
        ("2.9.1+cu128", "0.24.1+cu130", False),
        ("2.9.1+xpu", "0.24.1+cpu", False),
    ],
)
def test_only_the_backend_tells_builds_apart(torch: str, torchvision: str, fits: bool) -> None:
    versions = {"torch": torch, "torchvision": torchvision}
    check = software.torchvision(found(versions=versions, wants_torch=[]))
    assert (check.level is Level.OK) == fits, check


def test_the_busiest_processes_above_a_tenth_of_a_core_are_named() -> None:
    assert hardware.other_processes([(0.10, "idle", 1), (0.0, "asleep", 2)]).level is Level.OK
    shares = [(0.11, "a", 1), (0.5, "b", 2), (1.0, "c", 3), (0.2, "d", 4), (0.1, "e", 5)]
    check = hardware.other_processes(shares)
    assert check.level is Level.WARNING
    assert check.says == "of a core: c (3) 100%, b (2) 50%, d (4) 20%"


@pytest.mark.parametrize(
    ("listed", "others_s", "says"),
    [
        ([], 0.0, "no other process"),
        ([], 0.8, "40% of the processors"),
        ([(1, "burner", 80.0)], 0.8, "of a core: burner (1) 80%"),
        ([(number, "small", 8.0) for number in range(10)], 0.8, "no other process"),
    ],
)
def test_a_load_without_names_is_told(
    listed: list[tuple[int, str, float]],
    others_s: float,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of short processes, or of another container: two processors, on which a second passes."""
    shown = [
        SimpleNamespace(pid=pid, info={"name": name, "cpu_percent": percent})
        for pid, name, percent in listed
    ]
    times = iter((processors.Taken(0.0, 0.0), processors.Taken(others_s, 0.0)))
    monkeypatch.setattr("psutil.process_iter", lambda _: shown)
    monkeypatch.setattr(processors, "taken", lambda: next(times))
    monkeypatch.setattr(processors, "allowed", lambda: [0, 1])
    monkeypatch.setattr(hardware, "WATCH_S", 1.0)
    monkeypatch.setattr("time.sleep", lambda _: None)
    check = next(hardware.load())
    assert check.name == "other load"
    assert check.says.startswith(says)


def test_a_process_that_burns_a_core_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine it gets a small share of a core, and other processes take more.
    monkeypatch.setattr(hardware, "MOST_NAMED", 10_000)
    monkeypatch.setattr(hardware, "BUSY", 0.005)
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        load = next(check for check in hardware.load() if check.name == "other load")
    finally:
        burner.kill()
        burner.wait()
    assert load.level is Level.WARNING
    assert str(burner.pid) in load.says


def test_a_cache_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not even root writes there, and tests often run as root.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/proc/inductor")
    check = next(each for each in software.caches() if each.name == "Inductor's cache")
    assert check.level is Level.ERROR
    assert "TORCHINDUCTOR_CACHE_DIR" in check.remedy


def test_tritons_cache_is_looked_at_if_it_has_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it is inside of Inductor's, and not in the home folder, which may be read-only."""
    monkeypatch.setenv("HOME", "/proc/home")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    assert all(check.level is Level.OK for check in software.caches())
    monkeypatch.setenv("TRITON_CACHE_DIR", "/proc/triton")
    (check,) = (each for each in software.caches() if each.level is not Level.OK)
    assert (check.name, check.level) == ("Triton's cache", Level.ERROR)


@pytest.mark.usefixtures("brief_doctor")
def test_no_folder_for_temporary_files_ends_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    checks = [software.compiler(found()), *software.caches(), *hardware.checks()]
    (says,) = {check.says for check in checks if check.level is Level.ERROR}
    assert says.startswith("no folder for temporary files can be written")
    named = [check.name for check in checks if check.level is Level.ERROR]
    assert named == ["C++ compiler", "temporary files", "disk"]
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/proc/inductor")
    assert {check.name for check in software.caches()} >= {"temporary files", "Inductor's cache"}


def test_compiling_switched_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    (check,) = software.switches()
    assert check.level is Level.ERROR
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    assert not list(software.switches())


@pytest.mark.usefixtures("brief_doctor")
def test_every_check_of_the_machine_has_a_text_and_a_remedy_if_needed() -> None:
    for check in hardware.checks():
        assert check.says, check
        assert bool(check.remedy) == (check.level is not Level.OK), check


def test_every_fault_has_its_words() -> None:
    """A fault that no machine here has is still one that can be printed."""
    made: dict[str, set[str]] = {}
    for file in doctor.FAULTS.parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "fault":
                (name,) = node.args
                made[ast.literal_eval(name)] = {str(word.arg) for word in node.keywords}
    needed = {
        kind: {
            word
            for text in texts.values()
            for _, word, _, _ in string.Formatter().parse(text)
            if word is not None
        }
        for kind, texts in doctor._faults().items()
    }
    assert made == needed
    for kind, texts in doctor._faults().items():
        assert set(texts) == {"name", "level", "says", "remedy"}, kind
        assert texts["level"] in ("warning", "error", "{level}"), kind


def test_a_missing_torch_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    said, fault = software.probe(python)
    assert fault == ""
    check = software.torch(said)
    assert check.level is Level.ERROR
    assert "--release" in check.remedy


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("brief_doctor")
def test_the_command_ends_as_its_checks_do(
    newest: ReleaseEnvironment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in newest.lie_in(tmp_path).items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["doctor", "--release", newest.version, "--json"])
    said = validated("doctor", done.stdout)
    assert done.exit_code == any(each["level"] == "error" for each in said)
    assert {each["name"]: each["level"] for each in said}["torch"] == "ok"
    broken = CliRunner().invoke(
        app,
        ["doctor", "--release", newest.version, "--quiet"],
        env={"TORCHINDUCTOR_CACHE_DIR": "/proc/inductor", "NO_COLOR": "1"},
    )
    assert broken.exit_code == 1
    assert "error   Inductor's cache: /proc/inductor" in broken.stdout
