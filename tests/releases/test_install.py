"""Installations with a small real lock and the real uv. Only the import check is replaced."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.host.files import alone
from torchcompile_suite.releases import (
    catalogue,
    environments,
    extras,
    install,
    locking,
    stamp,
)
from torchcompile_suite.releases.install import MARKER, LockError, Said

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
RELEASE = msgspec.structs.replace(catalogue.find("2.4.1"), pythons=(RUNNING,))

# Installs into the folder, and is killed when the packages are there.
KILLED = """
import os, pathlib, signal, sys
import msgspec
from torchcompile_suite.releases import catalogue, environments, extras
catalogue.LOCKS, folder = map(pathlib.Path, sys.argv[1:3])
extras.read = lambda: {}
environments.prove = lambda release, python: os.kill(os.getpid(), signal.SIGKILL)
release = msgspec.json.decode(sys.argv[3], type=catalogue.Release)
environments.install(release, folder)
"""


def uv(*arguments: object) -> str:
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


UV = uv("--version").split()[1]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with packages that are not in the lock."""
    made = tmp_path / "env"
    uv("venv", "--python", sys.executable, made)
    uv("pip", "install", "--python", made / "bin" / "python", f"uv=={UV}", "six==1.17.0")
    return made


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the lines of the release's lock. It has no extras, and its packages import."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(catalogue, "LOCKS", folder)
    monkeypatch.setattr(extras, "read", dict)
    monkeypatch.setattr(environments, "prove", lambda release, python: "proven")

    def write(*lines: str) -> None:
        text = "".join(f"{line}\n" for line in ("# A comment.", *lines, f"uv=={UV}"))
        (folder / "2.4.1.txt").write_text(text)

    write("idna==3.10")
    return write


def with_extras(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    pinned = {package: {extras.EVERY: version} for package, version in versions.items()}
    monkeypatch.setattr(extras, "read", lambda: pinned)


def packages(environment: Path) -> list[str]:
    return sorted(uv("pip", "freeze", "--python", environment / "bin" / "python").split())


def test_environment_holds_exactly_the_lock(environment: Path) -> None:
    assert "six==1.17.0" in packages(environment)
    python, line = environments.install(RELEASE, environment)
    assert (python, line) == (environment / "bin" / "python", "proven")
    assert packages(environment) == ["idna==3.10", f"uv=={UV}"]
    assert not (environment / MARKER).exists()
    compiled = environments.packages_in(environment) / "idna" / "__pycache__"
    assert any(compiled.iterdir()), "else the first measured cell compiles it"


def test_an_environment_is_made_if_there_is_none(tmp_path: Path) -> None:
    """A Python without its settings is that of the system, where nothing may change."""
    folder = tmp_path / "parent" / "env"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    environments.install(RELEASE, folder)
    assert packages(folder) == ["idna==3.10", f"uv=={UV}"]
    done = subprocess.run(
        [folder / "bin" / "python", "-c", "import sys; print(sys.prefix)"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(folder)


@pytest.mark.parametrize("end", [LockError("torch does not import"), KeyboardInterrupt(), None])
def test_an_unfinished_installation_is_mended(
    environment: Path, end: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = environments.packages_in(environment)

    def fail(release: catalogue.Release, python: Path) -> str:
        assert end is not None
        raise end

    with monkeypatch.context() as patched:
        patched.setattr(environments, "prove", fail)
        if end is None:
            release = msgspec.json.encode(RELEASE).decode()
            folders = str(catalogue.LOCKS), str(environment)
            command = [sys.executable, "-c", KILLED, *folders, release]
            assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
            # As after a kill inside uv: files missing, others left over, metadata complete.
            (files / "idna" / "core.py").unlink()
            (files / "idna" / "of_another_version.py").write_text("")
        else:
            with pytest.raises(type(end)):
                environments.install(RELEASE, environment)
            assert packages(environment) == [], "it may have filled the disk"
    assert (environment / MARKER).exists()
    (files / "half-1.0.dist-info").mkdir()
    environments.install(RELEASE, environment)
    assert (files / "idna" / "core.py").exists()
    assert not (files / "idna" / "of_another_version.py").exists()
    assert packages(environment) == ["idna==3.10", f"uv=={UV}"]
    assert not (environment / MARKER).exists()


def test_a_mended_environment_is_as_a_new_one(environment: Path, tmp_path: Path) -> None:
    (environment / MARKER).touch()
    environments.install(RELEASE, environment)
    environments.install(RELEASE, tmp_path / "new")
    found = [
        {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        for folder in map(environments.packages_in, (environment, tmp_path / "new"))
    ]
    assert found[0] == found[1]


def test_extras_come_on_top_of_the_lock_without_dependencies(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jinja2 requires markupsafe, which the lock does not have."""
    locked = ["idna==3.10", f"uv=={UV}"]
    for version in ("3.1.6", "3.1.6", "3.1.5"):
        with_extras(monkeypatch, jinja2=version)
        environments.install(RELEASE, environment)
        assert packages(environment) == sorted([*locked, f"jinja2=={version}"])
    with_extras(monkeypatch)
    environments.install(RELEASE, environment)
    assert packages(environment) == locked


def test_an_extra_that_does_not_install_is_named_and_mended(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_extras(monkeypatch, jinja2="0.0.99")
    with pytest.raises(LockError, match=r"^uv could not install jinja2==0\.0\.99;"):
        environments.install(RELEASE, environment)
    assert (environment / MARKER).exists()
    with_extras(monkeypatch)
    environments.install(RELEASE, environment)
    assert packages(environment) == ["idna==3.10", f"uv=={UV}"]


def test_an_extra_that_does_not_install_costs_no_environment(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment with the lock is 6 GB of downloads, and the machine may be offline."""
    environments.install(RELEASE, environment)
    locked = packages(environment)
    (environment / stamp.FILE).write_text(environments.digest(RELEASE))
    with_extras(monkeypatch, jinja2="0.0.99")
    with pytest.raises(LockError, match=r"jinja2==0\.0\.99"):
        environments.install(RELEASE, environment)
    assert packages(environment) == locked
    assert not (environment / MARKER).exists()


@pytest.fixture
def really(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real check, with small packages in place of torch and its extras; it shows all."""
    monkeypatch.setattr(environments, "prove", install.prove)
    monkeypatch.setattr(install, "_IMPORTED", ("idna",))
    monkeypatch.setattr(install, "judge", lambda release, said: repr(said))


def test_the_real_check_imports_the_extras(
    environment: Path, monkeypatch: pytest.MonkeyPatch, really: None
) -> None:
    with_extras(monkeypatch, jinja2="3.1.6")
    _, line = environments.install(RELEASE, environment)
    assert "failed={'jinja2': \"ModuleNotFoundError: No module named 'markupsafe'\"}" in line
    assert "'idna': '3.10'" in line


def test_the_real_check_knows_the_module_of_each_extra(
    environment: Path, monkeypatch: pytest.MonkeyPatch, really: None
) -> None:
    with_extras(monkeypatch, **{"nvidia-ml-py": "13.615.71"})
    _, line = environments.install(RELEASE, environment)
    assert "failed={}" in line
    assert "'nvidia-ml-py': '13.615.71'" in line


def test_a_build_that_crashes_is_named(
    environment: Path, monkeypatch: pytest.MonkeyPatch, really: None
) -> None:
    monkeypatch.setattr(install, "ASK", "import sys; sys.exit('Illegal instruction')")
    with pytest.raises(LockError, match=r"crashes on import \(exit status 1\); .* Illegal inst"):
        environments.install(RELEASE, environment)


def test_another_cuda_brings_its_own_libraries(
    environment: Path, lock: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """jinja2 stands for torch, and markupsafe for what that build of it requires."""
    lock("jinja2==3.1.6", "nvidia-of-another-cuda==1.0", "triton==0.1")
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu128")
    environments.install(RELEASE, environment)
    found = [name.partition("==")[0] for name in packages(environment)]
    assert found == ["jinja2", "markupsafe", "uv"]
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    environments.install(RELEASE, environment)
    assert packages(environment) == ["jinja2==3.1.6", f"uv=={UV}"], "a lock is whole"


def test_an_installation_waits_for_another_one(environment: Path) -> None:
    """A killed run leaves an installation behind. The next run must not empty its environment."""
    with ThreadPoolExecutor() as pool:
        with environment.with_name("env.installing").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = pool.submit(environments.install, RELEASE, environment)
            time.sleep(1)
            assert not done.done()
            assert not (environment / MARKER).exists()
        assert done.result()[1] == "proven"


def test_uv_keeps_the_lock_of_a_killed_run(tmp_path: Path) -> None:
    started, ended, file = (tmp_path / name for name in ("started", "ended", "lock"))
    work = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(1); "
    work += f"pathlib.Path({str(ended)!r}).touch()"
    code = (
        "import pathlib, sys; from torchcompile_suite.host import programs\n"
        "from torchcompile_suite.host.files import alone\n"
        "with alone(pathlib.Path(sys.argv[1])) as held:\n"
        "    programs.run([sys.executable, '-c', sys.argv[2]], pass_fds=(held.fileno(),))\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(file), work])
    while not started.exists():
        time.sleep(0.01)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    with alone(file):
        assert ended.exists()


def test_failures_of_uv_are_one_line_with_its_last_lines(
    environment: Path, lock: Callable[..., None]
) -> None:
    lock("idna==0.0.99")
    with pytest.raises(LockError) as caught:
        environments.install(RELEASE, environment)
    said = str(caught.value)
    assert said.startswith("uv could not install the lock of PyTorch 2.4.1; uv says: ")
    assert "idna==0.0.99" in said
    assert "\n" not in said
    assert (environment / MARKER).exists()


def test_a_busy_machine_is_no_missing_network() -> None:
    assert install._NO_NETWORK.search("the operation timed out")
    assert not install._NO_NETWORK.search("bytecode timed out (60s) compiling file: _data.py")


def test_a_missing_network_is_named(
    environment: Path,
    lock: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock("idna==3.9")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(LockError, match="the package index cannot be reached"):
        environments.install(RELEASE, environment)


@pytest.mark.parametrize("said", ["No space left on device (os error 28)", "OS Error 28"])
def test_a_full_disk_is_named(
    environment: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    failed = subprocess.CompletedProcess([], 2, "", f"error: {said}\n")
    monkeypatch.setattr(install, "uv", lambda *arguments, **options: failed)
    with pytest.raises(LockError, match=r"2\.4\.1: the disk is full; .* error: "):
        environments.install(RELEASE, environment)


def test_a_uv_that_hangs_is_ended(tmp_path: Path) -> None:
    """Another process holds uv's lock on its cache."""
    done = locking.uv("venv", str(tmp_path / "made"), limit_s=0.001)
    assert done.returncode == 1
    assert done.stderr == "it took more than 0 minutes; run again: uv keeps its downloads"


def test_an_unsupported_python_touches_nothing(environment: Path) -> None:
    other = msgspec.structs.replace(RELEASE, pythons=("3.98", "3.99"))
    with pytest.raises(LockError) as caught:
        environments.install(other, environment)
    assert str(caught.value) == (
        f"PyTorch 2.4.1 has no wheels for Python {RUNNING}; supported: 3.98, 3.99"
    )
    assert "six==1.17.0" in packages(environment)
    assert not (environment / MARKER).exists()


def test_a_cpu_installation_leaves_out_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for release in catalogue.read():
        lines = release.lock.read_text().splitlines()
        kept = install.without_cuda(lines)
        assert not any(line.startswith(("nvidia-", "cuda-", "triton")) for line in kept)
        assert f"torch=={release.version}" in kept
        assert len(lines) - len(kept) >= 11


NEWER = catalogue.find("2.13.0")
VERSIONS = {"torch": "2.13.0", "torchvision": "0.28.0", "timm": "1.0.31"}


def said(versions: dict[str, str], **failed: str) -> Said:
    return Said(RUNNING, [], versions, failed, "")


def test_the_line_on_success() -> None:
    line = install.judge(NEWER, said({**VERSIONS, "torch": "2.13.0+cu130"}))
    assert line == "torch 2.13.0+cu130, torchvision 0.28.0, timm 1.0.31"


def test_the_line_on_success_names_the_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    with_extras(monkeypatch, torchao="0.18.0")
    found = {**VERSIONS, "torchao": "0.18.0+cpu"}
    line = install.judge(NEWER, said(found))
    assert line == "torch 2.13.0, torchvision 0.28.0, timm 1.0.31, torchao 0.18.0+cpu"
    for wrong in (said({**found, "torchao": "0.17.0"}), said(found, torchao="E: x")):
        with pytest.raises(LockError, match="torchao"):
            install.judge(NEWER, wrong)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            said(
                {**VERSIONS, "torch": "2.13.0+cpu"},
                torchvision="RuntimeError: operator torchvision::nms does not exist",
            ),
            ["torch 2.13.0+cpu and torchvision 0.28.0", "one index", "UV_TORCH_BACKEND"],
        ),
        (said({"torch": "2.12.0"}), ["2.13.0 was asked for and torch 2.12.0"]),
        (
            said({}, torch="ImportError: libx.so", timm="ImportError: torch"),
            ["torch (missing)", "libx.so"],
        ),
        (
            said({**VERSIONS, "timm": "1"}, timm="E"),
            ["timm 1 does not import with torch 2.13.0: E"],
        ),
    ],
)
def test_the_line_on_failure(found: Said, words: list[str]) -> None:
    with pytest.raises(LockError) as caught:
        install.judge(NEWER, found)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)
