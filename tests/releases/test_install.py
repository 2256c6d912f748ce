"""install.py, run as a program, with a small real lock. Only the import check is replaced."""

import dataclasses
import fcntl
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from torchcompile_suite.releases import catalogue, extras, install

SCRIPT = Path(install.__file__)
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"


def uv(*arguments):
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


UV = uv("--version").split()[1]


@pytest.fixture
def environment(tmp_path):
    uv("venv", "--python", sys.executable, tmp_path / "env")
    uv(
        "pip",
        "install",
        "--python",
        tmp_path / "env" / "bin" / "python",
        f"uv=={UV}",
        "six==1.17.0",
    )
    return tmp_path / "env"


@pytest.fixture
def checkout(tmp_path):
    return make_checkout(tmp_path / "checkout", ["idna==3.10", f"uv=={UV}"])


def make_checkout(folder, lines, pythons=(RUNNING,)):
    folder.mkdir()
    (folder / "release.json").write_text(json.dumps({"version": "2.4.1", "pythons": pythons}))
    (folder / "requirements.txt").write_text("# A comment.\n" + "\n".join(lines) + "\n")
    return folder


def run(python, checkout, check="return 'proven'", before="", **variables):
    """Run install.py with ``check`` in place of the imports of torch, torchvision and timm."""
    driver = checkout.parent / "driver.py"
    driver.write_text(
        f"import os, signal, sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import install\n"
        f"def check(wanted): {check}\n{before}\n"
        "sys.exit(install.main(sys.argv[1:], check))\n"
    )
    return subprocess.run(
        [python, driver, checkout],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


def packages(environment):
    listed = uv("pip", "freeze", "--python", environment / "bin" / "python")
    return sorted(listed.split())


def site(environment):
    return environment / "lib" / f"python{RUNNING}" / "site-packages"


def test_environment_holds_exactly_the_lock(environment, checkout):
    assert "six==1.17.0" in packages(environment)
    done = run(environment / "bin/python", checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "proven\n", "")
    assert packages(environment) == ["idna==3.10", f"uv=={UV}"]
    assert not (environment / install.MARKER).exists()


@pytest.mark.parametrize(
    ("check", "status"),
    [
        ("raise install.InstallError('torch does not import')", 1),
        ("raise KeyboardInterrupt", 130),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    ],
)
def test_an_unfinished_installation_is_repaired(environment, checkout, check, status):
    python = environment / "bin/python"
    done = run(python, checkout, check)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert (environment / install.MARKER).exists()
    # The state after a kill inside uv: some files missing, others left over, metadata complete.
    (site(environment) / "idna" / "core.py").unlink()
    (site(environment) / "idna" / "of_another_version.py").write_text("")
    (site(environment) / "half-1.0.dist-info").mkdir()
    assert run(python, checkout).returncode == 0
    assert (site(environment) / "idna" / "core.py").exists()
    assert not (site(environment) / "idna" / "of_another_version.py").exists()
    assert packages(environment) == ["idna==3.10", f"uv=={UV}"]
    assert not (environment / install.MARKER).exists()


def test_extras_come_on_top_of_the_lock_without_dependencies(environment, checkout):
    """jinja2 requires markupsafe, which the lock does not have."""
    (checkout / install.EXTRAS_FILE).write_text("jinja2==3.1.6\n")
    python = environment / "bin/python"
    assert run(python, checkout).returncode == 0
    locked = ["idna==3.10", f"uv=={UV}"]
    assert packages(environment) == sorted([*locked, "jinja2==3.1.6"])
    assert run(python, checkout).returncode == 0
    assert packages(environment) == sorted([*locked, "jinja2==3.1.6"])
    (checkout / install.EXTRAS_FILE).write_text("jinja2==3.1.5\n")
    assert run(python, checkout).returncode == 0
    assert packages(environment) == sorted([*locked, "jinja2==3.1.5"])
    (checkout / install.EXTRAS_FILE).unlink()
    assert run(python, checkout).returncode == 0
    assert packages(environment) == locked


def test_an_extra_that_does_not_install_is_named_and_repaired(environment, checkout):
    (checkout / install.EXTRAS_FILE).write_text("jinja2==0.0.99\n")
    python = environment / "bin/python"
    done = run(python, checkout)
    assert done.returncode == 1
    assert done.stderr.startswith("install.py: uv could not install jinja2==0.0.99;")
    assert (environment / install.MARKER).exists()
    (checkout / install.EXTRAS_FILE).unlink()
    assert run(python, checkout).returncode == 0
    assert packages(environment) == ["idna==3.10", f"uv=={UV}"]


def test_the_real_check_imports_the_extras(environment, checkout):
    """Small packages stand for torch and its extras; the check itself is the real one."""
    (checkout / install.EXTRAS_FILE).write_text("jinja2==3.1.6\n")
    as_torch = "install._IMPORTED = ('idna',); install.judge_imports = lambda w, found: str(found)"
    done = run(environment / "bin/python", checkout, "return install.import_all(wanted)", as_torch)
    assert done.returncode == 0, done.stderr
    assert "'failed': 'jinja2'" in done.stdout
    assert "markupsafe" in done.stdout


def test_another_cuda_brings_its_own_libraries(environment, checkout):
    """jinja2 stands for torch, and markupsafe for what that build of it requires."""
    lines = ["jinja2==3.1.6", "nvidia-of-another-cuda==1.0", "triton==0.1", f"uv=={UV}"]
    (checkout / "requirements.txt").write_text("\n".join(lines) + "\n")
    done = run(environment / "bin/python", checkout, UV_TORCH_BACKEND="cu128")
    assert (done.returncode, done.stderr) == (0, "")
    found = packages(environment)
    assert [name.partition("==")[0] for name in found] == ["jinja2", "markupsafe", "uv"]
    run(environment / "bin/python", checkout, UV_TORCH_BACKEND="cpu")
    assert packages(environment) == ["jinja2==3.1.6", f"uv=={UV}"], "a lock is whole"


def test_the_real_check_knows_the_module_of_each_extra(environment, checkout):
    (checkout / install.EXTRAS_FILE).write_text("\n".join(extras.pins("2.4.1")) + "\n")
    as_torch = "install._IMPORTED = ('idna',); install.judge_imports = lambda w, found: str(found)"
    done = run(environment / "bin/python", checkout, "return install.import_all(wanted)", as_torch)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout
    assert f"'nvidia-ml-py': '{extras.of('2.4.1')['nvidia-ml-py']}'" in done.stdout


def test_an_installation_waits_for_another_one(environment, checkout):
    """A killed run leaves an installation behind. The next run must not empty its environment."""
    with ThreadPoolExecutor() as pool:
        with (environment / f"{install.MARKER}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = pool.submit(run, environment / "bin/python", checkout)
            time.sleep(1)
            assert not done.done()
            assert not (environment / install.MARKER).exists()
        assert done.result().returncode == 0


def test_failures_of_uv_are_one_line_and_its_last_lines(environment, tmp_path):
    checkout = make_checkout(tmp_path / "bad", ["idna==0.0.99", f"uv=={UV}"])
    done = run(environment / "bin/python", checkout)
    assert done.returncode == 1
    first, *rest = done.stderr.splitlines()
    assert first == (
        "install.py: uv could not install the lock of PyTorch 2.4.1; "
        "the reason is in its last lines"
    )
    assert any("idna" in line for line in rest)
    assert (environment / install.MARKER).exists()


def test_a_missing_network_is_named(environment, tmp_path):
    checkout = make_checkout(tmp_path / "new", ["idna==3.9", f"uv=={UV}"])
    offline = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    offline["UV_CACHE_DIR"] = str(tmp_path / "cache")
    done = run(environment / "bin/python", checkout, **offline)
    assert done.returncode == 1
    assert "the package index cannot be reached" in done.stderr.splitlines()[0]


def test_an_unsupported_python_touches_nothing(environment, tmp_path):
    checkout = make_checkout(tmp_path / "old", ["idna==3.10", f"uv=={UV}"], ["3.1", "3.2"])
    done = run(environment / "bin/python", checkout)
    assert done.returncode == 1
    assert done.stderr == (
        f"install.py: PyTorch 2.4.1 has no wheels for Python {RUNNING}; supported: 3.1, 3.2\n"
    )
    assert "six==1.17.0" in packages(environment)
    assert not (environment / install.MARKER).exists()


def test_a_system_python_is_refused(environment, checkout):
    # This environment pretends to be a system's Python. If the check failed on a real one, or on
    # the environment that runs the tests, the installation would remove every package there.
    pretend = "sys.base_prefix = sys.prefix"
    done = run(environment / "bin/python", checkout, before=pretend)
    assert done.returncode == 1
    assert "is not in a virtual environment" in done.stderr
    assert "six==1.17.0" in packages(environment)


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["a", "b"], 2), (["nowhere"], 1)])
def test_wrong_use(arguments, status):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
    assert done.returncode == status
    assert len(done.stderr.splitlines()) == 1


def test_a_cpu_installation_leaves_out_cuda():
    for release in catalogue.read():
        lines = release.lock.read_text().splitlines()
        kept = install.without_cuda(lines)
        assert not any(line.startswith(("nvidia-", "cuda-", "triton")) for line in kept)
        assert f"torch=={release.version}" in kept
        assert len(lines) - len(kept) >= 11


WANTED = install.Checkout("2.13.0", ("3.11",), Path("x"), {"uv": UV})


def test_the_line_on_success():
    found = {"torch": "2.13.0+cu130", "torchvision": "0.28.0", "timm": "1.0.31"}
    line = install.judge_imports(WANTED, found)
    assert line == "torch 2.13.0+cu130, torchvision 0.28.0, timm 1.0.31"


def test_the_line_on_success_names_the_extras():
    wanted = dataclasses.replace(WANTED, extras={"torchao": "0.18.0"})
    found = {"torch": "2.13.0", "torchvision": "0.28.0", "timm": "1.0.31", "torchao": "0.18.0+cpu"}
    line = install.judge_imports(wanted, found)
    assert line == "torch 2.13.0, torchvision 0.28.0, timm 1.0.31, torchao 0.18.0+cpu"
    for wrong in ({**found, "torchao": "0.17.0"}, {**found, "failed": "torchao", "error": "E: x"}):
        with pytest.raises(install.InstallError, match="torchao"):
            install.judge_imports(wanted, wrong)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            {
                "torch": "2.13.0+cpu",
                "torchvision": "0.28.0",
                "failed": "torchvision",
                "error": "RuntimeError: operator torchvision::nms does not exist",
            },
            ["torch 2.13.0+cpu and torchvision 0.28.0", "one index", "UV_TORCH_BACKEND"],
        ),
        ({"torch": "2.12.0"}, ["2.13.0 was asked for and torch 2.12.0"]),
        ({"failed": "torch", "error": "ImportError: libx.so"}, ["torch (missing)", "libx.so"]),
        (
            {
                "torch": "2.13.0",
                "torchvision": "0.28.0",
                "timm": "1",
                "failed": "timm",
                "error": "E",
            },
            ["timm 1 does not import with torch 2.13.0: E"],
        ),
    ],
)
def test_the_line_on_failure(found, words):
    with pytest.raises(install.InstallError) as caught:
        install.judge_imports(WANTED, found)
    assert "\n" not in caught.value.args[0]
    assert all(word in caught.value.args[0] for word in words)
