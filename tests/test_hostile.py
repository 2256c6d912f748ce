"""Three hundred hostile files, things that are no files, hostile addresses: opened in Chromium."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from torchcompile_suite.asv import export, repository
from torchcompile_suite.presentation import answers
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import records, segments
from torchcompile_suite.results.segments import Header, Segment
from torchcompile_suite.site import build, render
from torchcompile_suite.site.sections import address

from .conftest import ROOT
from .irregular import IRREGULAR
from .shards import Report, rows
from .site import served, visited

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FOLDERS = 10
# Each folder has ten releases, with a file of ASV's, which nobody reads, a journal and a segment.
RELEASES = 10
BENCHMARKS = ("inference.Inference.track_latency", "inference.Inference.track_time_ratio")
MARKUP = "</td></script><script>window.attacked=1</script><img src=x onerror='window.attacked=1'>"
MARKUP_URL = "javascript:window.attacked=1//"
BINARY = "binary/01234567-virtualenv-py3.11.json"
BINARY_RECORDS = BINARY.replace(".json", ".records.jsonl")
VALUES: tuple[Any, ...] = (None, True, -1, 1e308, float("nan"), "text", MARKUP, [], {}, [[[]]])


class Made(NamedTuple):
    """The hostile files. Those of ``broken`` cannot be read at all."""

    results: Path
    broken: list[str]
    good: str


class Harm:
    """Ways to spoil the text of one JSON value. Each call makes another text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ways = [self.markup, self.other_type, self.truncated, self.huge, self.nan]
        self.ways += [self.deep, self.newer, self.not_text, self.key, self.negative]
        self.sure = {self.truncated, self.deep, self.newer, self.not_text, self.huge}

    def markup(self, content: Any) -> bytes:
        """Every text is markup, except for what says where the file belongs."""
        return json.dumps(_texts(content, self.random.choice([MARKUP, MARKUP_URL]))).encode()

    def other_type(self, content: Any) -> bytes:
        holder, key = self.random.choice(list(_leaves(content)))
        holder[key] = self.random.choice(VALUES)
        return json.dumps(content).encode()

    def nan(self, content: Any) -> bytes:
        numbers = [at for at in _leaves(content) if isinstance(at[0][at[1]], float)]
        for holder, key in numbers:
            holder[key] = self.random.choice([float("nan"), float("inf"), -float("inf")])
        return json.dumps(content).encode()

    def negative(self, content: Any) -> bytes:
        for holder, key in _leaves(content):
            if isinstance(holder[key], int | float):
                holder[key] = -abs(holder[key]) - 1
        return json.dumps(content).encode()

    def key(self, content: Any) -> bytes:
        content[MARKUP] = content
        del content[MARKUP]
        content[MARKUP] = MARKUP
        return json.dumps(content).encode()

    def truncated(self, content: Any) -> bytes:
        text = json.dumps(content).encode()
        return text[: self.random.randrange(1, len(text) - 1)]

    def huge(self, content: Any) -> bytes:
        texts = [at for at in _leaves(content) if isinstance(at[0][at[1]], str)]
        holder, key = self.random.choice(texts)
        holder[key] = "9" * (8 << 20)
        return json.dumps(content).encode()

    def deep(self, content: Any) -> bytes:
        return b"[" * 100_000 + json.dumps(content).encode()

    def newer(self, content: Any) -> bytes:
        content["version" if "version" in content else "schema"] = 99
        return json.dumps(content).encode()

    def not_text(self, content: Any) -> bytes:
        text = json.dumps(content).encode()
        at = self.random.randrange(1, len(text))
        return text[:at] + b"\xff\xfe\x00" + text[at:]


# These fields say where a file belongs, or have few values. With markup in them the file would only
# be foreign.
_PLACE = {"commit_hash", "machine", "workload", "mode", "kind", "status", "stopped", "process"}
_PLACE |= {"phase", "dtype", "device", "shapes", "backend", "allocator", "protocol", "baseline"}
_PLACE |= {"torch", "result_columns", "reference", "results", "env_name"}
_PLACE |= {"heap", "target", "start", "way"}
# Text that is no date is none of a measurement that counts.
_PLACE |= {"started_at"}
# With a reason to be set aside, no launch would count, and nothing would be shown.
_PLACE |= {"set_aside"}


def _texts(content: Any, text: str) -> Any:
    if isinstance(content, dict):
        return {key: one if key in _PLACE else _texts(one, text) for key, one in content.items()}
    if isinstance(content, list):
        return [_texts(one, text) for one in content]
    return text if isinstance(content, str) else content


def _leaves(content: Any) -> Iterator[tuple[Any, Any]]:
    for key in content if isinstance(content, dict) else range(len(content)):
        if isinstance(content[key], dict | list) and content[key]:
            yield from _leaves(content[key])
        else:
            yield content, key


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("asv.conf.json", "benchmarks", "src"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / name)
    results = folder / "results"
    # The site shows measurements with times and those of generated code on different pages. Of the
    # machines with both, the one with the fewest results: all of them are published twice.
    good, (timed, generated) = min(_machines_with_both(), key=lambda found: _size(found[0]))
    shutil.copytree(good, results / good.name)
    _spoilt_benchmarks(results / "benchmarks.json")

    ledger_commits = ledger.compute()[0]
    known = repository.in_ledger()
    package = ROOT / "benchmarks"
    description = good / "machine.json"
    asv_file = max(export.derive(good.parent, [description], known, package, []))
    asv_base = json.loads(asv_file.content)
    asv_base["results"] = {name: asv_base["results"][name] for name in BENCHMARKS}
    record_bases = [json.loads(min(lines, key=len)) for lines in (timed, generated)]
    commits = sorted(ledger_commits)[:RELEASES]
    broken = []
    harm = Harm(seed=20261121)
    for number in range(FOLDERS):
        machine = f"hostile-{number}"
        (results / machine).mkdir()
        facts = {"machine": machine, "version": 1, "cpu": MARKUP, "os": MARKUP_URL}
        (results / machine / "machine.json").write_text(json.dumps(facts))
        for place, commit in enumerate(commits):
            way = harm.ways[(number + place) % len(harm.ways)]
            base = copy.deepcopy(asv_base)
            base["commit_hash"] = commit
            base["params"]["machine"] = machine
            name = f"{commit[:8]}-virtualenv-py3.11"
            (results / machine / f"{name}.json").write_bytes(way(base))
            record_base = record_bases[(number + place // 2) % 2]
            line = way(copy.deepcopy(record_base))
            (results / machine / f"{name}.records.jsonl").write_bytes(line + b"\n")
            header = Header(machine, "2.9.1", commit[:8], "virtualenv-py3.11")
            line = way(copy.deepcopy(record_base)).replace(b"\n", b" ")
            segment = segments.write(results / machine, Segment(header, [line]))
            if way in harm.sure:
                broken.append(f"{machine}/{name}.records.jsonl")
                broken.append(f"{machine}/2.9.1/{segment.name}")
    assert len(list(results.glob("hostile-*/*-*"))) == 200
    assert len(list(results.glob("hostile-*/*/*"))) == 100
    (results / "binary").mkdir()
    noise = random.Random(1).randbytes(100_000).replace(b"\xff", b"\n")
    for name in (BINARY, BINARY_RECORDS):
        (results / name).write_bytes(noise)
    facts = {"machine": "binary", "version": 1}
    (results / "binary" / "machine.json").write_text(json.dumps(facts))
    with ExitStack() as stack:
        for name, make in IRREGULAR.items():
            for suffix in (".json", ".records.jsonl"):
                stack.enter_context(make(results / "hostile-0" / f"{name}{suffix}"))
            broken.append(f"hostile-0/{name}.records.jsonl")
            odd = f"hostile-1/2.9.1/{name}{segments.SUFFIX}"
            stack.enter_context(make(results / odd))
            broken.append(odd)
            stack.enter_context(make(results / name / "machine.json"))
            broken.append(f"{name}/machine.json")
        yield Made(results, broken, good.name)


def _machines_with_both() -> Iterator[tuple[Path, tuple[list[bytes], list[bytes]]]]:
    """The folders of machines, with the lines of their timed and of their generated cells."""
    for file in ROOT.glob("results/*/machine.json"):
        lines = [
            line
            for one in records.segment_files(file.parent)[0]
            for line in segments.read(one).lines
        ]
        generated = [line for line in lines if b'"target":"cuda' in line]
        timed = [line for line in lines if b'"target":"cuda' not in line]
        if timed and generated:
            yield file.parent, (timed, generated)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*"))


def _spoilt_benchmarks(file: Path) -> None:
    """Write the list of benchmarks, which is in results/, too, with a stranger's benchmark."""
    content = json.loads((ROOT / "results" / file.name).read_text())
    spoilt = _texts(content["inference.Inference.track_latency"], MARKUP)
    spoilt |= {"name": MARKUP, "type": "track", "version": "1"}
    content[MARKUP] = spoilt
    file.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def published(made: Made) -> tuple[Path, str]:
    """The site, and what `asv publish` printed."""
    run = subprocess.run(
        [sys.executable, "-m", "asv", "publish"],
        cwd=made.results.parent,
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return made.results.parent / "html", run.stdout + run.stderr


def test_each_broken_file_is_named_once(made: Made, published: tuple[Path, str]) -> None:
    site, printed = published
    named = Report(site / "report").problems
    tables = (site / "report" / "tables.html").read_text()
    for name in made.broken:
        assert printed.count(f"left out: {name}:") == 1
        assert sum(where.startswith(name) for where in named) == 1
        assert name in tables


def test_a_binary_file_is_one_line_with_its_count(made: Made, published: tuple[Path, str]) -> None:
    (line,) = [line for line in published[1].splitlines() if BINARY_RECORDS in line]
    assert re.search(r":1: not a measurement: .* \(the first of \d+ bad lines\)$", line)


def test_the_good_ones_are_published_as_if_alone(
    made: Made, published: tuple[Path, str], tmp_path: Path
) -> None:
    shutil.copytree(made.results / made.good, tmp_path / "results" / made.good)
    build.build(tmp_path / "results", tmp_path / "alone")
    alone, here = (
        Report(folder).machines[made.good]
        for folder in (tmp_path / "alone", published[0] / "report")
    )
    assert alone.keys == here.keys
    for key in alone.keys:
        assert alone.document(key) == here.document(key)


def test_no_text_of_a_file_stands_in_a_page_or_shard(published: tuple[Path, str]) -> None:
    report = published[0] / "report"
    for file in (*report.glob("*.html"), *report.glob("data/*.js")):
        text = file.read_text()
        assert "<script>window" not in text
        assert "<img" not in text
        assert 'href="javascript:' not in text


# What stands in the address comes from a stranger, too.
FIELDS = (
    *("machine", "at", "batch", "question", "cell", "model", "before", "after"),
    *("ask", "target", "phase", "mode", "count"),
)


@pytest.mark.timeout(900)  # hundreds of views
@pytest.mark.parametrize(
    ("together", "machines"),
    [
        # A folder has each way to spoil a file; two have them in different releases.
        ([FIELDS], 2),
        pytest.param([[field] for field in FIELDS], FOLDERS, marks=pytest.mark.nightly),
    ],
    ids=["all fields", "each field"],
)
def test_nothing_executes(
    published: tuple[Path, str], chromium: Browser, together: list[list[str]], machines: int
) -> None:
    site, _ = published
    report = Report(site / "report")
    hostile = [one for one in report.machines.values() if one.name.startswith("hostile-")]
    assert hostile
    hostile = hostile[:machines]
    pages = [
        *("index.html", "index.html#/summarylist", "index.html#/regressions"),
        *(f"index.html#{name}" for name in (*BENCHMARKS, MARKUP)),
    ]
    views = [kind.file for kind in (render.TABLES, render.RELEASES)]
    for machine in hostile:
        views += [f"{kind.file}#machine={machine.name}" for kind in render.KINDS]
        views += [
            address("answers.html", machine=machine.name, ask=name) for name in answers.names()
        ]
        views += [
            address("cell.html", machine=machine.name, at=point, cell=cell)
            for cell, line in machine.lines().items()
            for point in [row["point"] for row in rows(line)]
        ]
    for fields in together:
        for text in (MARKUP, MARKUP_URL, "__proto__", "constructor"):
            views += [address(kind.file, **dict.fromkeys(fields, text)) for kind in render.KINDS]
    with served(site) as host, visited(chromium, host) as visit:
        for name in pages:
            page = visit.open(host + name)
            assert page.evaluate("window.attacked === undefined"), name
        for name in views:
            page.goto("about:blank")
            page.goto(f"{host}report/{name}")
            if "#" in name:
                page.wait_for_selector("#view[aria-busy=false]")
                page.wait_for_selector("html[data-drawn]")
            assert page.evaluate("window.attacked === undefined"), name
            assert page.locator("main img, main iframe, main script").count() == 0, name
            assert page.locator("a[href^='javascript']").count() == 0, name
        outside = [fault for fault in visit.faults if fault.startswith("request to")]
        assert outside == []
        assert visit.dialogs == []
