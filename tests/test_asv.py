"""The main job, end to end: real ASV, real releases, a real model."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import journal
from torchcompile_suite.generated import GENERATION
from torchcompile_suite.host import machine
from torchcompile_suite.modes import EAGER
from torchcompile_suite.releases import catalogue, environments, ledger, stamp
from torchcompile_suite.results import parsing, records

from .conftest import QUICK, ROOT, ReleaseEnvironment
from .schemas import validated
from .test_launch import processes_named, wait_until
from .test_matrix import NEW_WORKLOAD

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

OLD, NEW = "v2.4", catalogue.read()[-1].tag
# Workloads that take microseconds a call and compile in seconds: what is tested does not depend on
# the model.
CELLS = r"Inference.*\('softmax_matmul', 1, '(eager|default)'\)"
METRICS = {
    f"inference.Inference.track_{name}"
    for name in ("latency", "time_ratio", "cold_compile", "warm_compile", "peak_memory")
}


class Checkout:
    """A copy of this checkout, uncommitted changes included, with nothing measured in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workloads: Path | None = None
        # The launches of a cell. None: the stopping rule decides.
        self.launches: int | None = None
        self.results = folder / "results" / machine.detect().machine
        self.environments = folder / ".asv" / "releases"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if name.split("/")[0] in {"results", "html"} or not (ROOT / name).is_file():
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)

    def start(self, *arguments: str, module: str = "asv") -> subprocess.Popen[str]:
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TORCHCOMPILE_SUITE_", "TORCHINDUCTOR_", "ASV_"))
        }
        variables.update(QUICK)
        variables[environments.FOLDER_VARIABLE] = str(self.environments)
        if self.launches:
            variables["TORCHCOMPILE_SUITE_LAUNCHES"] = str(self.launches)
        if self.workloads:
            variables["TORCHCOMPILE_SUITE_WORKLOADS"] = str(self.workloads)
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=self.folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def asv(self, *arguments: str, status: int = 0, module: str = "asv") -> str:
        process = self.start(*arguments, module=module)
        out, _ = process.communicate()
        assert process.returncode == status, out
        return out

    def result(self, tag: str) -> dict[str, dict[str, object]]:
        """ASV's result file of a release: for each benchmark its columns by name."""
        (file,) = self.results.glob(f"{self.commit(tag)[:8]}-*.json")
        data = json.loads(file.read_text())
        return {
            name: dict(zip(data["result_columns"], row, strict=False))
            for name, row in data["results"].items()
        }

    def commit(self, tag: str) -> str:
        ledger.build(self.folder / ".asv" / "ledger")
        return ledger.compute()[1][tag]

    def unfinished(self) -> list[bytes]:
        """The launches in the journals of series that are not complete."""
        return [
            line
            for file in (self.folder / ".asv" / "series").rglob(journal.FILE)
            for line in file.read_bytes().splitlines()
            if b'"launch"' in line
        ]

    def entries(self, tag: str) -> list[parsing.Entry]:
        """All measurements of a release, in the journal and sealed, oldest first."""
        (files,) = (
            files
            for journal, files in records.files(self.results)[0].items()
            if records.place(journal)[0] == self.commit(tag)[:8]
        )
        found = {
            entry.identity: entry for entries, _ in parsing.read_files(files) for entry in entries
        }
        return sorted(found.values(), key=lambda entry: entry.order)


def measured(row: dict[str, object]) -> dict[tuple[str, ...], object]:
    """The values that are numbers, by parameters."""
    import itertools

    params = itertools.product(*row["params"])  # type: ignore[misc]
    values = zip(params, row["result"], strict=True)  # type: ignore[call-overload]
    return {key: value for key, value in values if isinstance(value, float) and value == value}


@pytest.fixture(scope="module")
def checkout(
    tmp_path_factory: pytest.TempPathFactory, newest: ReleaseEnvironment
) -> Iterator[Checkout]:
    """A checkout that finds the newest release installed."""
    made = Checkout(tmp_path_factory.mktemp("clone"))
    newest.lie_in(made.environments)
    yield made
    # Gigabytes of torch: pytest would keep them for three test runs.
    shutil.rmtree(made.folder / ".asv")


@pytest.fixture(scope="module")
def printed(checkout: Checkout) -> str:
    """What `asv run` printed for the newest release."""
    printed = checkout.asv("run", f"{NEW}^!", "--bench", CELLS, "--show-stderr")
    # No other test reads statistics of its launches.
    checkout.launches = 1
    return printed


@pytest.fixture(scope="module")
def older(checkout: Checkout, printed: str) -> None:
    """An older release, which `asv run` itself installs and measures."""
    checkout.launches = None
    checkout.asv("run", f"{OLD}^!", "--bench", CELLS)
    checkout.launches = 1


# The newest release, and every night the older one as well.
OF_EACH = pytest.mark.parametrize(
    "tag", [NEW, pytest.param(OLD, marks=pytest.mark.nightly)], indirect=True
)


@pytest.fixture
def tag(request: pytest.FixtureRequest, printed: str) -> str:
    """A release with results."""
    if request.param == OLD:
        request.getfixturevalue("older")
    return str(request.param)


@OF_EACH
def test_a_release_is_measured(checkout: Checkout, tag: str) -> None:
    result = checkout.result(tag)
    # The cells are also those of other benchmarks. A settled heap holds more by design.
    assert set(result) >= METRICS - {"inference.Inference.track_peak_memory"}
    assert "inference.Inference.track_peak_memory" not in result
    cells = {("'softmax_matmul'", "1", f"'{mode}'") for mode in ("eager", "default")}
    assert set(measured(result["inference.Inference.track_latency"])) == cells
    ratios = measured(result["inference.Inference.track_time_ratio"])
    assert set(ratios) == cells
    compiles = measured(result["inference.Inference.track_cold_compile"])
    assert set(compiles) == {("'softmax_matmul'", "1", "'default'")}


@pytest.mark.parametrize(
    ("metric", "figure"),
    [("latency", statistics.launch_latency), ("time_ratio", statistics.launch_ratio)],
)
def test_asv_gets_one_sample_a_launch(
    checkout: Checkout, printed: str, metric: str, figure: Callable[..., float]
) -> None:
    row = checkout.result(NEW)[f"inference.Inference.track_{metric}"]
    samples = [one for one in row["samples"] if one]  # type: ignore[attr-defined]
    launches = [statistics.counted(entry.measurement.launches) for entry in checkout.entries(NEW)]
    assert all(len(those) >= statistics.FIRST_LOOK for those in launches)
    expected = [[figure(launch.pairs_s) for launch in those] for those in launches]
    for actual, wanted in zip(sorted(samples), sorted(expected), strict=True):
        assert actual == pytest.approx(wanted)


@OF_EACH
def test_all_metrics_of_a_cell_are_one_measurement(checkout: Checkout, tag: str) -> None:
    # Other tests measure other cells.
    entries = [
        entry
        for entry in checkout.entries(tag)
        if (entry.measurement.cell.workload, entry.measurement.cell.batch_size)
        == ("softmax_matmul", 1)
    ]
    assert len(entries) == 2
    assert list(records.journals(checkout.results)) == []
    for _, _, measurement in entries:
        assert measurement.outcome.ok
        assert measurement.environment is not None
        release = catalogue.find(tag)
        assert measurement.environment.torch.split("+")[0] == release.version
        if release.git_version:
            assert measurement.environment.torch_git == release.git_version


def test_it_says_what_it_does_and_how_long_is_left(printed: str) -> None:
    assert "cell 1 of 2: softmax_matmul, batch 1, " in printed
    assert "left" in printed


def test_it_prints_the_cells_of_this_run_and_no_other(printed: str) -> None:
    rows = [line for line in printed.splitlines() if "softmax_matmul, 1, " in line]
    # Two cells of five metrics. Eager has no compile costs, and neither cell has a memory.
    assert len(rows) == 10
    assert sum(row.endswith(": n/a") for row in rows) == 4
    assert printed.count("n/a") == 4
    assert len(printed.splitlines()) < 40


@pytest.mark.nightly
def test_bench_on_a_machine_without_results(
    newest: ReleaseEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The README's first command, on new hardware."""
    made = Checkout(tmp_path_factory.mktemp("new"))
    newest.lie_in(made.environments)
    made.launches = 1
    printed = made.asv("bench", module="torchcompile_suite")
    for name in ("resnet18", "mobilenetv3_small_100", "vit_tiny_patch16_224", "DistilBert"):
        assert name in printed
    assert (made.folder / "html" / "report" / "index.html").exists()
    shutil.rmtree(made.folder / ".asv")


@pytest.mark.nightly
def test_compare_needs_no_options(checkout: Checkout, older: None) -> None:
    out = checkout.asv("compare", OLD, NEW)
    assert "<v2.4>" in out
    assert "inference.Inference.track_latency('softmax_matmul', 1, 'default')" in out
    assert "inference.Inference.track_cold_compile('softmax_matmul', 1, 'default')" in out


@pytest.mark.nightly
def test_publish_builds_the_site(checkout: Checkout, older: None) -> None:
    checkout.asv("publish")
    index = json.loads((checkout.folder / "html" / "index.json").read_text())
    # A settled heap keeps more than a call needs, so these cells have no peak memory.
    assert set(index["benchmarks"]) >= METRICS - {"inference.Inference.track_peak_memory"}
    assert "v2.4.1" in index["tags"]
    assert list(index["machines"]) == [machine.detect().machine]
    # Whatever the kernel is called today, it does not split the series.
    assert index["params"]["os"] == ["Linux"]
    assert list((checkout.folder / "html" / "graphs").rglob("*track_latency*.json"))


@pytest.mark.nightly
def test_skip_existing_measures_nothing_twice(checkout: Checkout, printed: str) -> None:
    before = checkout.entries(NEW), checkout.result(NEW)
    out = checkout.asv("run", f"{NEW}^!", "--bench", CELLS, "--skip-existing")
    assert "measured before" in out
    after = checkout.entries(NEW), checkout.result(NEW)
    assert after[0] == before[0]
    for name, row in before[1].items():
        assert measured(after[1][name]) == measured(row)


@pytest.mark.nightly
def test_a_narrower_run_erases_nothing(checkout: Checkout, printed: str, tmp_path: Path) -> None:
    """A user's workload is measured, then something else without it: both stay, none failed."""
    name = "inference.Inference.track_latency"
    before = measured(checkout.result(NEW)[name])
    checkout.workloads = tmp_path / "mine.py"
    checkout.workloads.write_text(NEW_WORKLOAD)
    out = checkout.asv("run", f"{NEW}^!", "--bench", r"Inference.*\('mlp', 1, 'eager'\)")
    assert "failed" not in out
    mine = ("'mlp'", "1", "'eager'")
    assert measured(checkout.result(NEW)[name]).keys() == before.keys() | {mine}
    checkout.workloads = None
    cells = r"Inference.*\('layernorm_gelu', 1, 'eager'\)"
    checkout.asv("run", f"{NEW}^!", "--bench", cells)
    after = measured(checkout.result(NEW)[name])
    assert after.keys() == before.keys() | {mine, ("'layernorm_gelu'", "1", "'eager'")}
    assert all(after[cell] == value for cell, value in before.items())
    checkout.asv("publish")
    published = json.loads((checkout.folder / "html" / "index.json").read_text())
    assert "'mlp'" in published["benchmarks"][name]["params"][0]


# Its build waits, so that a run can be killed in the middle of a cell on any machine.
WAITING_WORKLOAD = """
import pathlib, time
from torchcompile_suite.workloads import workload

FOLDER = pathlib.Path(__file__).parent

@workload("waiting", family="tests")
def waiting(batch_size):
    import torch

    (FOLDER / "started").touch()
    while not (FOLDER / "go").exists():
        time.sleep(0.1)
    return torch.nn.Linear(8, 8), (torch.randn(batch_size, 8),)
"""


def test_a_killed_run_is_completed_by_the_next(
    checkout: Checkout, printed: str, tmp_path: Path
) -> None:
    """kill -9 in mid-cell: no process is left, what was measured counts, the next run adds the
    rest.
    """
    cells = r"Inference.*\('(branch_on_value|waiting)', 1, 'eager'\)"
    before = checkout.entries(NEW)
    checkout.workloads = tmp_path / "mine.py"
    checkout.workloads.write_text(WAITING_WORKLOAD)
    process = checkout.start("run", f"{NEW}^!", "--bench", cells)
    wait_until(lambda: (tmp_path / "started").exists())
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not processes_named(str(checkout.folder)))
    assert len(checkout.entries(NEW)) == len(before) + 1
    assert len(records.journals(checkout.results)) == 1
    (tmp_path / "go").touch()
    checkout.asv("run", f"{NEW}^!", "--bench", cells, "--skip-existing")
    checkout.workloads = None
    assert len(checkout.entries(NEW)) == len(before) + 2
    assert records.journals(checkout.results) == []
    latency = measured(checkout.result(NEW)["inference.Inference.track_latency"])
    assert ("'branch_on_value'", "1", "'eager'") in latency
    assert ("'waiting'", "1", "'eager'") in latency
    # The narrower run has not touched what the wider one measured.
    assert ("'softmax_matmul'", "1", "'default'") in latency


@pytest.mark.nightly
def test_a_failure_is_recorded_and_mended_by_the_next_run(
    checkout: Checkout, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a compiler every compiled cell fails, with the remedy; with one, all is measured."""
    cells = r"Inference.*\('softmax_matmul', 8, 'default'\)"
    with monkeypatch.context() as patched:
        patched.setenv("PATH", _path_without_compilers(checkout.folder))
        patched.setenv("CXX", "no-such-compiler")
        out = checkout.asv("run", f"{NEW}^!", "--bench", cells, status=2)
    assert "compile-error: no working C++ compiler" in out
    out = checkout.asv("run", f"{NEW}^!", "--bench", cells, "--skip-existing")
    assert "of eager's time" in out
    latency = measured(checkout.result(NEW)["inference.Inference.track_latency"])
    assert ("'softmax_matmul'", "8", "'default'") in latency


def _path_without_compilers(folder: Path) -> str:
    programs = folder / "programs"
    programs.mkdir()
    for name in ("git", "sh", "python3.11", "ldconfig", "uname"):
        if found := shutil.which(name):
            (programs / name).symlink_to(Path(found).resolve())
    return str(programs)


@contextmanager
def small_disk(folder: Path, kibibytes: int) -> Iterator[Path]:
    """A disk of its own for a folder, which keeps its contents; full when it holds no more."""
    folder.mkdir(exist_ok=True)
    kept = shutil.copytree(folder, folder.with_name(folder.name + "-kept"))
    options = ["-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(folder)]
    root = [] if os.getuid() == 0 else ["sudo", "-n"]
    if root:
        options[3] += f",uid={os.getuid()}"
    done = subprocess.run([*root, "mount", *options], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(kept)
        pytest.skip(f"mounting a small disk needs root: {done.stderr.strip()}")
    try:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        yield folder
    finally:
        subprocess.run([*root, "umount", "--lazy", str(folder)], check=True)
        shutil.rmtree(kept)


@pytest.mark.nightly
def test_a_full_disk_for_results_stops_at_once(checkout: Checkout, older: None) -> None:
    before = checkout.result(NEW)
    with small_disk(checkout.folder / "results", 1024):
        with (
            contextlib.suppress(OSError),
            (checkout.folder / "results" / "rest").open("wb") as file,
        ):
            while True:
                file.write(bytes(4096))
                file.flush()
        out = checkout.asv("run", f"{NEW}^!", "--bench", CELLS, status=1)
        assert "benchmarks.json: No space left on device; nothing was changed" in out
        assert "Traceback" not in out
        assert checkout.result(NEW) == before
    checkout.asv("compare", OLD, NEW)


@pytest.mark.nightly
def test_a_full_disk_for_compiled_code_is_said_and_the_next_run_completes(
    checkout: Checkout, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = r"Inference.*\('shape_loop', 1, 'eager'\)"
    # Not pytest's folder for temporary files: ASV binds a socket in TMPDIR, and the system allows
    # a socket's path 107 bytes.
    with (
        tempfile.TemporaryDirectory() as folder,
        small_disk(Path(folder) / "small", 50 * 1024) as small,
        monkeypatch.context() as patched,
    ):
        patched.setenv("TMPDIR", str(small))
        out = checkout.asv("run", f"{NEW}^!", "--bench", cells, status=1)
    assert "the disk for compiled code (TMPDIR) has only" in out
    out = checkout.asv("run", f"{NEW}^!", "--bench", cells, "--skip-existing")
    assert "of eager's time" in out


@pytest.mark.nightly
def test_a_killed_installation_is_mended_and_never_measured(
    checkout: Checkout, older: None
) -> None:
    cells = r"Inference.*\('vit16x6x384', 8, 'eager'\)"
    before = checkout.entries(OLD)
    (folder,) = checkout.environments.glob(f"{catalogue.find(OLD).version}-py*/")
    shutil.rmtree(folder)
    process = checkout.start("run", f"{OLD}^!", "--bench", cells)
    # uv has begun to link the thousands of files of torch.
    wait_until(lambda: any(folder.glob("lib/python*/site-packages/torch/*")))
    # asv first: where only uv is killed, asv begins anew.
    os.kill(process.pid, signal.SIGKILL)
    for installing in processes_named(str(folder)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(installing, signal.SIGKILL)
    process.communicate()
    assert not (folder / stamp.FILE).exists()
    assert checkout.entries(OLD) == before
    checkout.asv("run", f"{OLD}^!", "--bench", cells, "--skip-existing")
    *others, newest = checkout.entries(OLD)
    assert others == before
    assert newest.measurement.cell.workload == "vit16x6x384"
    assert newest.measurement.environment is not None
    version = newest.measurement.environment.torch.split("+")[0]
    assert version == catalogue.find(OLD).version


@pytest.fixture(scope="module")
def turns(
    make_environment: Callable[[str], ReleaseEnvironment],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Checkout]:
    """Both releases measured in turns, in a checkout of their own that finds them installed."""
    made = Checkout(tmp_path_factory.mktemp("turns"))
    for release in (OLD, NEW):
        make_environment(release).lie_in(made.environments)
    made.launches = 3
    commits = made.folder / "commits"
    commits.write_text(f"{OLD}\n{NEW}\n")
    yield made
    shutil.rmtree(made.folder / ".asv")


IN_TURNS = ("run", "HASHFILE:commits", "--interleave-rounds", "--skip-existing", "--bench", CELLS)


@pytest.mark.nightly
def test_a_killed_series_goes_on_where_it_stopped(turns: Checkout) -> None:
    process = turns.start(*IN_TURNS)
    # In the middle of the second round.
    wait_until(lambda: len(turns.unfinished()) == 3)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not processes_named(str(turns.folder)))
    assert len(turns.unfinished()) == 3
    out = turns.asv(*IN_TURNS)
    assert f"2.4.1, {catalogue.read()[-1].version} in turns" in out
    assert "cell 4 of 4: softmax_matmul, batch 1, " in out, "two cells of two releases"
    assert not turns.unfinished()
    for tag in (OLD, NEW):
        measurements = [entry.measurement for entry in turns.entries(tag)]
        assert len(measurements) == 2
        for measurement in measurements:
            # More, if the host moved the processors.
            assert 3 <= len(statistics.counted(measurement.launches)) <= 12
            if measurement.cell.mode != EAGER:
                cold, *others = [launch.kind for launch in measurement.launches]
                assert cold == "cold"
                assert set(others) == {"warm"}, "the compiled code is still there"
    killed = [
        launch.round
        for tag in (OLD, NEW)
        for entry in turns.entries(tag)
        for launch in entry.measurement.launches
    ]
    assert killed.count(0) == 1, "one launch of the round that was killed is no pair any more"


@pytest.mark.nightly
def test_a_complete_series_is_not_measured_again(turns: Checkout) -> None:
    before = [turns.entries(tag) for tag in (OLD, NEW)]
    out = turns.asv(*IN_TURNS)
    assert out.count("measured before") >= 2
    assert "in turns" not in out
    assert [turns.entries(tag) for tag in (OLD, NEW)] == before


@pytest.mark.nightly
def test_continuous_takes_turns_and_compares(turns: Checkout) -> None:
    """Of a benchmark without values, too: on a CPU none has a peak memory."""
    cell = r"Inference.(track_peak_memory|track_time_ratio)\('softmax_matmul', 1, 'default'\)"
    process = turns.start("continuous", OLD, NEW, "--bench", cell)
    out, _ = process.communicate()
    assert process.returncode in (0, 1), "1: something became slower"
    assert "Traceback" not in out
    assert "in turns" in out
    assert "BENCHMARKS NOT SIGNIFICANTLY CHANGED" in out or "PERFORMANCE" in out


def test_a_dry_run_is_refused(checkout: Checkout) -> None:
    out = checkout.asv("run", f"{NEW}^!", "--bench", CELLS, "--dry-run", status=1)
    assert "torchcompile-suite try" in out


@pytest.mark.nightly
def test_results_in_turns_are_those_of_a_run_of_each_release(
    checkout: Checkout, older: None, turns: Checkout
) -> None:
    for tag in (OLD, NEW):
        apart, beside = checkout.result(tag), turns.result(tag)
        for name in apart.keys() & METRICS:
            assert set(beside[name]) == set(apart[name])
            cells = measured(beside[name]).keys()
            assert cells == {
                cell for cell in measured(apart[name]) if cell[0] == "'softmax_matmul'" and
                cell[1] == "1"
            }  # fmt: skip
            assert beside[name]["version"] == apart[name]["version"]
    out = turns.asv("compare", OLD, NEW)
    assert "inference.Inference.track_latency('softmax_matmul', 1, 'default')" in out
    turns.asv("publish")
    assert list((turns.folder / "html" / "graphs").rglob("*track_latency*.json"))


@pytest.mark.nightly
def test_the_report_compares_turns_round_by_round(turns: Checkout) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchcompile_suite", "report", OLD, NEW, "--format", "json"],
        cwd=turns.folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    comparison = validated("report-releases", done.stdout)
    assert comparison["cells"] == 2
    assert comparison["compared"] == comparison["paired"]
    # Other work on the machine may slow one release only: such a cell is named and left out.
    gaps = [change["gap"] for change in comparison["changes"] if change["gap"]]
    assert all("a neighbour made the processors" in gap for gap in gaps)
    assert comparison["compared"] == 2 - len(gaps)


@pytest.mark.nightly
def test_ctrl_c_ends_a_history_and_the_same_command_goes_on(turns: Checkout) -> None:
    cell = Cell("pointwise_chain", 1, "default")
    command = ("history", OLD, NEW, "--cells", matrix.pattern(cell) or "", "--rounds", "2")
    process = turns.start(*command, module="torchcompile_suite")
    wait_until(lambda: len(turns.unfinished()) == 3)
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    out, _ = process.communicate()
    assert process.returncode not in (0, -signal.SIGKILL)
    assert "interrupted; to continue, run the same command again" in out
    assert "Traceback" not in out
    assert not processes_named(str(turns.folder))
    assert len(turns.unfinished()) == 3
    turns.asv(*command, module="torchcompile_suite")
    assert not turns.unfinished()
    kinds = []
    for tag in (OLD, NEW):
        (made,) = [
            entry.measurement
            for entry in turns.entries(tag)
            if matrix.on_any_device(entry.measurement.cell) == cell
        ]
        assert len(statistics.counted(made.launches)) == 2
        kinds += [launch.kind for launch in made.launches]
    assert kinds.count("cold") == 2, "the compiled code is still there"


@pytest.mark.nightly
def test_two_runs_in_turns_do_not_disturb_each_other(turns: Checkout) -> None:
    place = turns.folder / ".asv" / "series" / machine.detect().machine
    with FileLock(place / "lock"):
        out = turns.asv(*IN_TURNS, status=1)
    assert "another run measures releases in turns here" in out
    assert "Traceback" not in out


@pytest.mark.nightly
def test_a_full_disk_while_an_environment_is_made_costs_nothing(
    turns: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first release lies there. The second one does not fit: then the same command goes on."""
    cells = matrix.pattern(Cell("branch_on_value", 1, EAGER)) or ""
    command = ("run", "HASHFILE:commits", "--interleave-rounds", "--bench", cells)
    (there,) = turns.environments.glob(f"{catalogue.find(OLD).version}-py*/")
    before = [turns.entries(tag) for tag in (OLD, NEW)]
    with (
        tempfile.TemporaryDirectory() as folder,
        small_disk(Path(folder) / "small", 200 * 1024) as small,
        monkeypatch.context() as patched,
    ):
        (small / there.name).symlink_to(there, target_is_directory=True)
        patched.setattr(turns, "environments", small)
        out = turns.asv(*command, status=1)
    assert "the disk is full" in out
    assert "Traceback" not in out
    assert [turns.entries(tag) for tag in (OLD, NEW)] == before
    turns.asv(*command)
    assert [len(turns.entries(tag)) for tag in (OLD, NEW)] == [len(one) + 1 for one in before]


@pytest.mark.nightly
def test_a_full_disk_in_a_series_is_no_fault_of_a_release(
    turns: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = matrix.pattern(Cell("shape_loop", 1, EAGER)) or ""
    command = ("run", "HASHFILE:commits", "--interleave-rounds", "--bench", cells)
    before = [turns.entries(tag) for tag in (OLD, NEW)]
    with small_disk(turns.folder / ".asv" / "series", 50 * 1024):
        out = turns.asv(*command, status=1)
        assert not turns.unfinished()
    assert re.search(r"the disk for compiled code \(.*/caches\) has only", out)
    assert "run the same command again" in out
    assert [turns.entries(tag) for tag in (OLD, NEW)] == before
    turns.asv(*command)
    assert all(entry.measurement.outcome.ok for tag in (OLD, NEW) for entry in turns.entries(tag))


def test_results_of_another_machine_are_not_mixed_in(checkout: Checkout, printed: str) -> None:
    file = checkout.results / "machine.json"
    mine = file.read_text()
    file.write_text(mine.replace('"num_cpu": "', '"num_cpu": "9'))
    try:
        out = checkout.asv("run", f"{NEW}^!", "--bench", CELLS, status=1)
    finally:
        file.write_text(mine)
    assert "choose another name for these: TORCHCOMPILE_SUITE_MACHINE=NAME" in out
    assert "Traceback" not in out


@pytest.mark.nightly
def test_generated_code_is_counted(checkout: Checkout) -> None:
    cells = r"Codegen.*\('softmax_matmul', 'default', 'cuda:sm90'\)"
    out = checkout.asv("run", f"{NEW}^!", "--bench", cells)
    assert "failed" not in out
    assert "2 launches a call, 1 of them of libraries" in out
    row = checkout.result(NEW)["codegen.Codegen.track_launches"]
    values = [value for value in row["result"] if value == value]  # type: ignore[attr-defined]
    assert (values, row["version"]) == ([2], str(GENERATION))
