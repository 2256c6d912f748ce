"""Fixtures: real environments of real releases, and a browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from torchcompile_suite.analysis import break_tables
from torchcompile_suite.doctor import hardware
from torchcompile_suite.engine.settings import (
    BUDGET_VARIABLE,
    PRECISION_VARIABLE,
    REPEATS_VARIABLE,
)
from torchcompile_suite.measurement import Launch
from torchcompile_suite.releases import apart, catalogue, environments, stamp
from torchcompile_suite.request import Plan, Request
from torchcompile_suite.results import cached

# The fast tests run without Playwright.
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

# A busy machine may pause any example, or the making of examples, for longer than any limit.
# Each run has other examples: a few suffice for a change, and every night there are more.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", PATIENT, max_examples=30)
settings.register_profile("many", PATIENT, max_examples=100)
settings.load_profile("few")

ROOT = Path(__file__).resolve().parents[1]

# The fast tests need no package that drives a browser.
collect_ignore = [] if find_spec("playwright") else ["test_browser.py"]

# Settings for measurements whose figures nobody reads. Three launches are precise enough, wherever
# the host runs the processors, and a launch that another process disturbed is not repeated.
# Inductor does not compile six programs in each empty cache to learn which vector instructions the
# C++ compiler knows. A cache for one kernel is filled sooner without a precompiled header.
HEADERS = "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"
QUICK = {
    PRECISION_VARIABLE: "1",
    BUDGET_VARIABLE: "1",
    REPEATS_VARIABLE: "0",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
    HEADERS: "0",
}

# A launch whose figures nobody reads. The number of pairs ends it, not the time: a busy machine
# measures as many.
BRIEF = Plan(warm_up_limit_s=1, min_pairs=3, min_timed_s=0.1, max_timed_s=100, error=1)

# What releases() calls the newest one.
NEWEST = "newest"

# xdist hands out whole files in this order: the longest first, so that both test processes finish
# at about the same time. Other files follow in their usual order.
LONGEST_FIRST = (
    "tests/test_asv.py",
    "tests/test_browser.py",
    "tests/test_compiled.py",
    "tests/test_docs.py",
    "tests/test_launch.py",
    "tests/test_trial.py",
    "tests/test_generate.py",
    "tests/test_hostile.py",
    "tests/test_fleet_ray.py",
    "tests/test_fleet.py",
    "tests/test_strangers.py",
    "tests/test_starts.py",
    "tests/test_precision.py",
    "tests/test_hugging_face.py",
)


@pytest.fixture
def brief_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor reads the probes for half a second instead of ten."""
    monkeypatch.setattr(hardware, "READ_S", 0.5)
    monkeypatch.setattr(hardware, "WATCH_S", 0.3)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the derived summaries, empty and the test's own; returned before it exists."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(cached, "folder", lambda: folder)
    return folder


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C end what the tests start, and two test processes share the processors.

    What the processes of the tests leave in the folder for temporary files, those that are killed
    and Inductor's cache, goes with the tests. pytest's own folders stay where they always are.

    A shell that starts the tests in the background makes them ignore Ctrl-C, and so their
    processes. Threads that wait for each other in a loop take the processors that the others need:
    beside each other, two processes with torch's two threads are three times as fast without.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if not hasattr(config, "workerinput"):  # one folder for both
        own = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)
        os.environ["TMPDIR"] = own.name
        config.add_cleanup(own.cleanup)


def releases(*older: str) -> list[Any]:
    """Parameters of a test: the newest release, and every night the older ones as well."""
    return [NEWEST, *(pytest.param(tag, marks=pytest.mark.nightly) for tag in older)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests by file; see LONGEST_FIRST."""
    for item in items:
        # Without "slow" it would be among the fast ones.
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.slow)

    def place(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        return LONGEST_FIRST.index(file) if file in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=place)


class ReleaseEnvironment:
    """A virtual environment with the packages of one release's lock, without the suite."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self.python = folder / "bin" / "python"

    def variables(self, **more: str) -> dict[str, str]:
        """The variables for a process in the environment: QUICK, not the user's own settings."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TORCHCOMPILE_SUITE_", "TORCHINDUCTOR_", "ASV_"))
        }
        kept.update(QUICK)
        kept["PYTHONPATH"] = str(ROOT / "src")
        kept["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}"
        return {**kept, **more}

    def run(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python with the arguments."""
        options.setdefault("env", self.variables())
        options.setdefault("timeout", 600)
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [str(self.python), *arguments], capture_output=True, text=True, **options
        )

    def answer(self, program: str, *arguments: str, **options: object) -> Any:
        """The JSON that the program prints."""
        done = self.run("-c", program, *arguments, **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def launch(self, request: Request, workloads: Path | None = None, **variables: str) -> Launch:
        """Make the launch, with the workloads of that file."""
        if workloads:
            variables["TORCHCOMPILE_SUITE_WORKLOADS"] = str(workloads)
        done = self.run(
            "-m",
            "torchcompile_suite.engine.launches",
            input=msgspec.json.encode(request).decode(),
            env=self.variables(**variables),
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        return msgspec.json.decode(done.stdout, type=Launch)

    def copy(self, folder: Path) -> ReleaseEnvironment:
        """Copy the environment in a second: the files are hard links, which installers and Python
        replace and never write to.
        """
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder, symlinks=True, copy_function=_link)
        return ReleaseEnvironment(folder, self.version)

    def lie_in(self, folder: Path) -> dict[str, str]:
        """Be the release's own environment in that folder of environments.

        Returns the variable that names the folder to the suite.
        """
        release = catalogue.find(self.version)
        place = folder / environments.folder_of(release).name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(self.folder, target_is_directory=True)
        (place / stamp.FILE).write_text(environments.digest(release))
        return {environments.FOLDER_VARIABLE: str(folder)}

    def with_apart(self, library: str) -> ReleaseEnvironment:
        """The environment, with a library that lies apart in it."""
        file = self.folder / stamp.FILE
        before = file.read_bytes() if file.exists() else None
        file.write_text(environments.digest(catalogue.find(self.version)))
        apart.provide(self.python, [library])
        if before is None:
            file.unlink()
        return self


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


@pytest.fixture(scope="session")
def make_environment(
    worker_id: str, testrun_uid: str
) -> Iterator[Callable[[str], ReleaseEnvironment]]:
    """Makes a release's environment for this test process, which may change it.

    The first test process that asks for a release installs it; all of them use copies.
    """
    # Beside the checkout, so that uv links from its cache instead of copying gigabytes.
    asv = ROOT / ".asv"
    made: dict[str, ReleaseEnvironment] = {}

    def make(name: str) -> ReleaseEnvironment:
        newest = catalogue.read()[-1].version
        version = newest if name == NEWEST else catalogue.find(name).version
        if version not in made:
            shared = _installed(version, asv / f"test-env-{version}", testrun_uid)
            made[version] = shared.copy(asv / f"test-env-{version}-{worker_id}")
        return made[version]

    asv.mkdir(exist_ok=True)
    yield make
    for environment in made.values():
        shutil.rmtree(environment.folder)


def _installed(version: str, folder: Path, testrun_uid: str) -> ReleaseEnvironment:
    """The environment that the test processes copy: installed or checked once a test run."""
    environment = ReleaseEnvironment(folder, version)
    checked = folder.with_name(f"{folder.name}.checked")
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not checked.exists() or checked.read_text() != testrun_uid:
            environments.install(catalogue.find(version), folder)
            checked.write_text(testrun_uid)
    return environment


@pytest.fixture(scope="session")
def newest(make_environment: Callable[[str], ReleaseEnvironment]) -> ReleaseEnvironment:
    """The environment of the newest release."""
    return make_environment(NEWEST)


@pytest.fixture
def break_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lines in the form of PyTorch's tables of graph breaks, in place of the package's."""
    file = tmp_path / "break_tables.csv"
    file.write_text(
        "# Invented.\nrelease,table,workload,model,accuracy,graph_breaks\n"
        "2.9.1,cpu_inductor_timm_inference.csv,mobilenetv2_100,mobilenetv2_100,pass,0\n"
        "2.9.1,inductor_timm_inference.csv,mobilenetv2_100,mobilenetv2_100,pass,0\n"
        "2.9.1,inductor_timm_inference.csv,ghostnet_100,ghostnet_100,fail_to_run,0\n"
        "2.9.1,cpu_inductor_huggingface_inference.csv,AllenaiLongformerBase,"
        "AllenaiLongformerBase,pass,4\n"
    )
    monkeypatch.setattr(break_tables, "FILE", file)
    return file


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    """What drives the browsers."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def chromium(driver: Playwright) -> Iterator[Browser]:
    """The system's Chromium."""
    program = _first_of("chromium", "chromium-browser", "google-chrome")
    assert program, "no Chromium; on Debian or Ubuntu: apt-get install chromium"
    browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def firefox(driver: Playwright) -> Iterator[Browser]:
    """The system's Firefox, as it is: Playwright drives it by WebDriver BiDi."""
    from playwright.sync_api import Error

    program = _first_of("firefox", "firefox-esr")
    if program is None:
        pytest.skip("no Firefox; on Debian: apt-get install firefox-esr")
    browser = driver.firefox.launch(executable_path=program, channel="moz-firefox")
    try:
        browser.new_context().close()
    except Error as error:
        pytest.skip(
            f"{program} {browser.version} cannot be driven: {error.message.splitlines()[0]}"
        )
    yield browser
    browser.close()


def _first_of(*names: str) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)
