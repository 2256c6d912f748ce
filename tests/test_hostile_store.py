"""More than a hundred kinds of hostile files in a store: none stops it, each is named."""

from __future__ import annotations

import copy
import json
import lzma
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from torchcompile_suite.analysis import summaries, summary
from torchcompile_suite.asv import export, repository, staging
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import descriptions, records, sealing, segments
from torchcompile_suite.results.segments import Header, Segment
from torchcompile_suite.site import build

from . import examples
from .conftest import ROOT
from .irregular import IRREGULAR
from .shards import Report
from .test_hostile import Harm
from .test_store import DAMAGED, tree

COMMITS = ledger.compute()[0]
COMMIT = next(sha for sha, one in COMMITS.items() if one.version == "2.9.1")
SEEDS = 5
RECORD = json.loads(msgspec.json.encode(examples.measurement()))
NAMES = ["../../x", "a/b", "\n", "\x1b[2J", "é" * 100, "<script>alert(1)</script>", "." * 80]
NAMES += ["é" * 127, "env\n", "\u202eenv"]


pytestmark = pytest.mark.usefixtures("empty_cache")


def machine(results: Path, name: str) -> Path:
    (results / name).mkdir(parents=True)
    facts = {"machine": name, "cpu": "<img src=x onerror=alert(1)>", "version": 1}
    (results / name / "machine.json").write_text(json.dumps(facts))
    return results / name


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A store with one measurement of a good machine."""
    results = tmp_path / "results"
    folder = machine(results, "good")
    records.append(records.path(folder, COMMIT, "virtualenv-py3.11"), examples.measurement())
    sealing.seal(folder)
    file = ROOT / "results" / "benchmarks.json"
    (results / file.name).write_bytes(file.read_bytes())
    return results


def judged(results: Path, broken: list[str]) -> None:
    """The good measurement is there, each broken file is named once, and nothing raises."""
    for read in (records.read, summaries.read, summaries.read):
        content = read(results)
        named = [one.where for one in content.problems]
        for name in broken:
            assert sum(where.partition(":")[0] == name for where in named) == 1, name
        assert len(named) == len(set(named))
        assert all("\n" not in problem.reason for problem in content.problems)
        assert [one for one in content.records if one.machine == "good"]
        summary.rows(content.records)
    machines = staging.machines(results, [])
    derived = list(
        export.derive(results, machines, repository.in_ledger(), ROOT / "benchmarks", [])
    )
    assert [file for file in derived if file.path.parent.name == "good"]
    for file in derived:
        assert not file.path.is_absolute()
        assert len(file.path.parts) == 2
        # ASV prints them, and makes names of files of them.
        content = json.loads(file.content)
        assert content["params"]["machine"] == file.path.parent.name
        for text in (content["env_name"], content["python"], *content["params"].values()):
            descriptions.check_text(text)
        for line in content["results"].values():
            numbers = line[content["result_columns"].index("result")]
            assert all(one is None or not abs(one) > export.LARGEST for one in numbers or [])
    shown(results, broken)


def shown(results: Path, broken: list[str]) -> None:
    """The report has the good measurement and names each broken file, twice in a row."""
    for number in range(2):
        folder = results.with_name(f"report-{number}")
        shutil.rmtree(folder, ignore_errors=True)
        problems = build.build(results, folder)
        report = Report(folder)
        assert "good" in report.machines
        assert len(report.machines["good"].figures("2.9.1")) == 1
        for name in broken:
            assert sum(problem.where.partition(":")[0] == name for problem in problems) == 1, name
        assert report.everything()
        for file in folder.rglob("*.*"):
            assert file.is_relative_to(folder)
            if file.suffix == ".html":
                assert "<img" not in file.read_text()


def merged(results: Path, target: Path) -> None:
    """Merging takes what is sound, whatever else there is, and a second time nothing."""
    first = sealing.merge(target, results)
    assert first.added > 0
    before = tree(target)
    again = sealing.merge(target, results)
    assert again.added == 0
    assert tree(target) == before
    assert [one for one in records.read(target).records if one.machine == "good"]


@pytest.mark.parametrize("sealed", [True, False])
def test_a_hundred_spoilt_measurements(good: Path, tmp_path: Path, sealed: bool) -> None:
    broken = []
    for seed in range(SEEDS):
        harm = Harm(seed)
        for number, way in enumerate(harm.ways):
            folder = machine(good, f"hostile-{seed}-{number}")
            line = way(copy.deepcopy(RECORD)).replace(b"\n", b" ")
            header = Header(folder.name, "2.9.1", COMMIT[:8], "virtualenv-py3.11")
            if sealed:
                file = segments.write(folder, Segment(header, [line]))
            else:
                file = records.path(folder, COMMIT, "virtualenv-py3.11")
                file.write_bytes(line + b"\n")
            if way in harm.sure:
                broken.append(str(file.relative_to(good)))
    assert len(broken) == SEEDS * 5
    judged(good, broken)
    merged(good, tmp_path / "target")


@pytest.mark.parametrize("harm", range(4))
def test_times_that_differ_by_any_factor(good: Path, tmp_path: Path, harm: int) -> None:
    """Sound JSON, and figures beyond all bounds: nothing overflows, and the rest is published."""
    shortest, longest = (1e-12, 1e7) if harm < 2 else (5e-324, 1e7)
    for place, release in enumerate(("2.4.1", "2.9.1")):
        for mode in ("eager", "default"):
            line = json.loads(msgspec.json.encode(examples.measurement(mode=mode)))
            for number, launch in enumerate(line["launches"]):
                pair = [shortest, longest] if (number + place) % 2 else [longest, shortest]
                launch["pairs_s"] = [pair] * len(launch["pairs_s"])
                launch["compiler_import_s"] = 5e-324 if harm % 2 else 1e7
                launch["warm_up_s"] = [0.0 if place else longest] * 12
                launch["peak_memory_bytes"] = 2**53 if place else 1
                if launch["environment"]:
                    launch["environment"]["torch"] = f"{release}+cpu"
            commit = next(sha for sha, one in COMMITS.items() if one.version == release)
            file = records.path(good / "box", commit, "virtualenv-py3.11")
            if not file.parent.is_dir():
                machine(good, "box")
            with file.open("ab") as stream:
                stream.write(json.dumps(line).encode() + b"\n")
    judged(good, [])
    assert ("box" in Report(tmp_path / "report-0").machines) is (harm < 2)


def test_spoilt_files(good: Path, tmp_path: Path) -> None:
    folder = machine(good, "box")
    broken = []

    def add(name: str, data: bytes) -> None:
        file = folder / "2.9.1" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        broken.append(str(file.relative_to(good)))

    for data, _ in DAMAGED.values():
        add(segments.name_of(data), data)
    header = Header("box", "2.9.1", COMMIT[:8], "virtualenv-py3.11")
    sound = segments.encode(Segment(header, [json.dumps(RECORD).encode()]))[1]
    for place in range(0, len(sound), len(sound) // 20):
        flipped = bytearray(sound)
        flipped[place] ^= 0x41
        add(f"{place:032x}{segments.SUFFIX}", bytes(flipped))  # a name that lies
        add(segments.name_of(bytes(flipped)), bytes(flipped))  # a name that fits
    assert len(broken) > 50
    with ExitStack() as stack:
        for name, place_it in IRREGULAR.items():
            odd = folder / "2.9.1" / f"{name}{segments.SUFFIX}"
            stack.enter_context(place_it(odd))
            broken.append(str(odd.relative_to(good)))
        (folder / "2.9.1" / f"link{segments.SUFFIX}").symlink_to(folder / "machine.json")
        (folder / "2.9.1" / f"dangling{segments.SUFFIX}").symlink_to(folder / "nowhere")
        broken += [f"box/2.9.1/{name}{segments.SUFFIX}" for name in ("link", "dangling")]
        judged(good, broken)
        merged(good, tmp_path / "target")


@pytest.mark.parametrize(
    "fields",
    [
        {"cpu": "x" * 300},
        {"cpu": "\ud800"},
        {"cpu": "\x1b]0;title\x07"},
        {"os": "\u202egnp.exe"},
        {"machine": "another"},
        {"x" * 300: "value"},
        {"x" * 100: "value" * 30},
        {"machine-amd": "x"},
        {"<b>note</b>": "x"},
        {f"field {number}": "value" * 20 for number in range(30)},
        {f"field {number}": "value" for number in range(100)},
        {"cpu": {"auths": {"host": "secret"}}},
    ],
    ids=lambda fields: ascii(fields)[:40],
)
def test_a_description_that_no_machine_has(good: Path, fields: dict[str, object]) -> None:
    """Its values become names of files and text on pages and in the terminal."""
    folder = machine(good, "box")
    records.append(records.path(folder, COMMIT, "virtualenv-py3.11"), examples.measurement())
    facts = {"machine": "box", "version": 1} | fields
    (folder / "machine.json").write_text(json.dumps(facts))
    shown(good, ["box/machine.json"])
    assert "box" not in {file.parent.name for file in staging.machines(good, [])}


def test_a_folder_that_no_machine_can_have(good: Path) -> None:
    folder = machine(good, "a<b")
    records.append(records.path(folder, COMMIT, "virtualenv-py3.11"), examples.measurement())
    shown(good, ["a<b/machine.json"])


def test_what_asv_shows_as_html_is_text(good: Path) -> None:
    conf = SimpleNamespace(
        results_dir=str(good), benchmark_dir=ROOT / "benchmarks", dvcs=repository.ReleaseLedger.dvcs
    )
    with staging.staged(conf) as stage:
        assert stage.problems == []
        copy = Path(conf.results_dir, "good", "machine.json")
        cpu = "&lt;img src=x onerror=alert(1)&gt;"
        assert json.loads(copy.read_text()) == {"machine": "good", "cpu": cpu, "version": 1}


def test_a_description_elsewhere_is_not_published(good: Path, tmp_path: Path) -> None:
    secret = tmp_path / "config.json"
    secret.write_text(json.dumps({"machine": "box", "version": 1, "auths": "a private token"}))
    folder = machine(good, "box")
    records.append(records.path(folder, COMMIT, "virtualenv-py3.11"), examples.measurement())
    (folder / "machine.json").unlink()
    (folder / "machine.json").symlink_to(secret)
    shown(good, ["box/machine.json"])
    for file in (tmp_path / "report-0").rglob("*.*"):
        assert b"private token" not in file.read_bytes()
    assert "private token" not in repr(Report(tmp_path / "report-0").everything())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["commit", "env_name", "machine", "release"])
def test_names_lead_nowhere(good: Path, tmp_path: Path, field: str, name: str) -> None:
    folder = machine(good, "box")
    fields = {"machine": "box", "release": "2.9.1", "commit": COMMIT[:8], "env_name": "env"}
    head = json.dumps({**fields, field: name, "format": 1}).encode()
    data = lzma.compress(head + b"\n" + json.dumps(RECORD).encode() + b"\n")
    (folder / "2.9.1").mkdir()
    (folder / "2.9.1" / segments.name_of(data)).write_bytes(data)
    before = set(tmp_path.parent.iterdir())
    judged(good, [])
    merged(good, tmp_path / "target")
    assert set(tmp_path.parent.iterdir()) == before


def _unreadable_name(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff\xfe.records.jsonl")).write_bytes(b"{\n")


def _line_break(folder: Path) -> None:
    (folder / "a\nb.records.jsonl").write_bytes(json.dumps(RECORD).encode() + b"\n")


def _folder_of_line_break(folder: Path) -> None:
    (folder / "a\nb").mkdir()
    (folder / "a\nb" / f"0{segments.SUFFIX}").write_bytes(b"x")


def _unreadable_machine(folder: Path) -> None:
    odd = folder.with_name(os.fsdecode(b"\xff\xfe"))
    odd.mkdir()
    journal = records.path(odd, COMMIT, "virtualenv-py3.11")
    journal.write_bytes(json.dumps(RECORD).encode() + b"\n")


def _unreadable_place(folder: Path) -> None:
    name = os.fsdecode(COMMIT[:8].encode() + b"-\xff\xfe.records.jsonl")
    (folder / name).write_bytes(json.dumps(RECORD).encode() + b"\n")


def _loop(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)


ODD = [_unreadable_name, _unreadable_machine, _unreadable_place]
ODD += [_line_break, _folder_of_line_break, _loop]


@pytest.mark.parametrize("odd", ODD)
def test_odd_names(good: Path, tmp_path: Path, odd: Callable[[Path], None]) -> None:
    odd(machine(good, "box"))
    judged(good, [])
    sealing.merge(tmp_path / "target", good)
    sealed = sealing.seal(good / "box")
    assert records.read(good).records
    assert sealed.segments == []
