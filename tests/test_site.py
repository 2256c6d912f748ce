"""The report as files: its documents, links, escaping, and the same output for the same results."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import asv
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from torchcompile_suite import matrix
from torchcompile_suite.analysis import change, claims, history, summaries, summary
from torchcompile_suite.analysis.ends import REMEDY
from torchcompile_suite.analysis.payoff import Payoff, best, payoff
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.asv import publish
from torchcompile_suite.cell import Cell
from torchcompile_suite.commits.clone import Clone
from torchcompile_suite.compiled import Compiled, GraphBreak
from torchcompile_suite.measurement import METHOD, Measurement, Outcome, Status
from torchcompile_suite.modes import EAGER, MODES
from torchcompile_suite.presentation import answers, documents, hardware
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import cached, parsing, records, sealing
from torchcompile_suite.site import axis, build, cells, content, packs, render
from torchcompile_suite.site.documents import fastest, figures

from . import divided, examples
from .examples import twin
from .shards import Machine, Report, read_pack, rows

ATTACK = "</td><script>alert('x')</script><img src=x onerror=alert(1)>\"'&"
MACHINES = ("first-machine", "second-machine")
RELEASES = ("2.4.1", "2.9.1", "2.15.0")


def made(release: str, workload: str, mode: str, **changes: object) -> Measurement:
    measurement = examples.measurement(workload, mode=mode, scale=float(len(workload)) / 10)
    launches = [
        msgspec.structs.replace(
            launch,
            environment=examples.environment(f"{release}+cpu"),
            compiled=Compiled(
                graphs=2,
                graph_breaks=[GraphBreak(ATTACK, "model.py:3")],
                kernels=3,
                phases_s={"dynamo": 1.0, "inductor": 5.0},
                unknown={"guards": ATTACK},
            )
            if launch.kind == "cold" and mode != "eager"
            else None,
        )
        for launch in measurement.launches
    ]
    return msgspec.structs.replace(measurement, launches=launches, **changes)


def fill(results: Path) -> None:
    """Results of two machines and three releases, with hostile text in every text of a file."""
    commits = ledger.commit_of()
    for machine in MACHINES:
        folder = results / machine
        folder.mkdir(parents=True)
        facts = {"machine": machine, "cpu": f"{ATTACK} of {machine}"}
        (folder / "machine.json").write_text(json.dumps(facts))
        for release in RELEASES:
            file = records.path(folder, commits[release], "virtualenv-py3.11")
            for workload in ("resnet18", "vit16x6x384"):
                for mode in MODES:
                    records.append(file, made(release, workload, mode))
            failed = Outcome(Status.COMPILE_ERROR, ATTACK)
            records.append(
                file, msgspec.structs.replace(examples.measurement("broken", outcome=failed))
            )
            training = Cell("resnet18", 4, "default", phase="training")
            records.append(file, made(release, "resnet18", "default", cell=training))
            copy_s = 0.004 if release == RELEASES[0] else 0.002
            for measurement in (*generated(release), examples.divided(release, ATTACK, copy_s)):
                records.append(file, measurement)


def generated(release: str) -> list[Measurement]:
    """Code for a target: one kernel more in each release, a cell that fails in the second, and a
    mode that the third does not have.
    """
    kernels = 3 + RELEASES.index(release)
    refused = Outcome(Status.UNSUPPORTED, ATTACK)
    made = examples.generated
    graphs = examples.code(cuda_graphs=1, outside_launches=0)
    second = {"outcome": refused} if release == RELEASES[1] else {}
    older = [made(mode="reduce-overhead", release=release, forward=graphs)]
    return [
        made(release=release, forward=examples.code(kernels)),
        made("vit16x6x384", release=release, **second),  # type: ignore[arg-type]
        *(older if release != RELEASES[2] else []),
    ]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own, empty at first."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached, "folder", lambda: folder)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "report"
    assert build.build(results, folder) == []
    return folder


@pytest.fixture(scope="module")
def report(site: Path) -> Report:
    return Report(site)


@pytest.fixture(scope="module")
def first(report: Report) -> Machine:
    return report.machines[MACHINES[0]]


class Parsed(HTMLParser):
    """The tags, handlers, links and ids of a page, and its text."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.handlers.append(name)
            elif name in ("href", "src"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.add(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[str, Parsed]:
    return {file.name: Parsed(file) for file in site.glob("*.html")}


# Pages


def test_every_link_leads_somewhere(site: Path, report: Report, parsed: dict[str, Parsed]) -> None:
    for name, page in parsed.items():
        for link in page.links:
            path, _, fragment = link.partition("#")
            if path in ("../index.html", "../swallow.ico"):
                continue  # ASV's own
            assert (site / (path or name)).is_file(), f"{name} -> {link}"
            if "=" not in fragment:
                assert not fragment or fragment in parsed[path or name].ids, f"{name} -> {link}"
                continue
            state = {key: value for key, (value,) in parse_qs(fragment).items()}
            machine = report.machines[state["machine"]]
            points = {state[name] for name in ("at", "before", "after") if name in state}
            assert points
            assert points <= set(machine.entry["points"])
            assert "cell" not in state or state["cell"] in machine.lines()


def test_every_page_is_listed_and_every_script_is_there(
    site: Path, parsed: dict[str, Parsed]
) -> None:
    kinds = [render.RELEASES, *render.KINDS, render.TABLES]
    changed = {f"release-{'.'.join(one.split('.')[:2])}.html" for one in RELEASES[1:]}
    assert set(parsed) == {*(kind.file for kind in kinds), *changed}
    assert changed <= set(parsed["releases.html"].links)
    for kind in kinds:
        room = {one.file for one in kinds if one.room is kind.room}
        first = {next(one.file for one in kinds if one.room is room) for room in render.Room}
        page = parsed[kind.file]
        assert room | first <= set(page.links)
    views = {file.stem for file in (site / "views").glob("*.js")}
    assert views == {"release", *(kind.script for kind in kinds if kind.script)}


def test_no_page_has_markup_of_a_result_file(site: Path, parsed: dict[str, Parsed]) -> None:
    assert "alert('x')" in parsed["tables.html"].text
    for name, page in parsed.items():
        assert not {"img", "iframe", "object", "form"} & set(page.tags), name
        assert not page.handlers, name
        text = (site / name).read_text()
        # Each script is a file of the report's own.
        assert text.count("<script") == text.count('<script defer src="')


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)


def test_no_text_of_a_result_stands_in_a_script(site: Path, report: Report) -> None:
    assert any(ATTACK in text for text in texts_of(report.everything()))
    for file in (site / "data").glob("*.js"):
        text = file.read_text("ascii")
        assert "<" not in text


def test_every_page_forbids_files_of_other_hosts(site: Path) -> None:
    assert "unsafe" not in render.POLICY
    for file in site.glob("*.html"):
        assert f'content="{render.POLICY.replace(chr(39), "&#39;")}"' in file.read_text()


def test_plain_tables_have_every_machine_and_the_newest_figures(
    report: Report, parsed: dict[str, Parsed]
) -> None:
    text = parsed["tables.html"].text
    for machine in report.machines.values():
        assert machine.name in text
        overview = machine.document(f"overview/{RELEASES[-1]}")
        for group in overview["groups"]:
            assert group["headline"] in text
    assert (
        report.machines[MACHINES[0]].document(f"overview/{RELEASES[-1]}")["groups"][0]["headline"]
        in parsed["index.html"].text
    )


def test_a_release_has_the_fragment_of_its_ledger_commit(parsed: dict[str, Parsed]) -> None:
    assert {sha[:8] for sha in ledger.compute()[0]} <= parsed["releases.html"].ids


# Documents


def test_every_release_has_a_document_of_each_kind(report: Report) -> None:
    for machine in report.machines.values():
        assert machine.entry["points"] == list(RELEASES)
        for release in RELEASES:
            for kind in (
                "overview/{}",
                "figures/{}/0",
                "launches/{}/0",
                "compiler/{}",
                "claims/{}",
                "answers/{}",
            ):
                assert machine.document(kind.format(release)) is not None
        for before, after in itertools.combinations(RELEASES, 2):
            assert machine.document(f"pairs/{before}/{after}") is not None
        assert {"trust", "lines/0", "means/inference", "means/training"} <= set(machine.keys)


def recorded(results: Path, release: str, machine: str = MACHINES[0]) -> list[records.Record]:
    return [
        record
        for record in summaries.read(results).records
        if (record.machine, record.release) == (machine, release)
    ]


def same(one: float | None, other: float | None) -> bool:
    if one is None or other is None or not math.isfinite(other):
        return one is None and (other is None or not math.isfinite(other))
    return math.isclose(one, other, rel_tol=10.0 ** (1 - packs.DIGITS))


def test_the_figures_are_those_of_the_report(results: Path, first: Machine) -> None:
    for release in RELEASES:
        wanted = {str(row.cell): row for row in summary.rows(recorded(results, release))}
        found = {row["cell"]: row for row in first.figures(release)}
        assert found.keys() == wanted.keys()
        for name, row in wanted.items():
            shown = found[name]
            assert shown["outcome"] == row.outcome.status.value
            assert shown["reason"] == row.outcome.reason
            for field, interval in (
                ("eager_s", row.eager_s),
                ("mode_s", row.latency_s),
                ("ratio", row.ratio),
            ):
                bounds = interval or (None, None, None)
                for part, bound in zip(("", "_low", "_high"), bounds, strict=True):
                    assert same(shown[f"{field}{part}"], bound), (name, field)
            assert same(shown["cold_compile_s"], row.cold_compile_s)
            assert same(shown["warm_compile_s"], row.warm_compile_s)
            assert same(shown["break_even_calls"], row.break_even_calls)


def test_the_answers_are_those_of_the_command(results: Path, first: Machine) -> None:
    for release in RELEASES:
        found = first.document(f"answers/{release}")
        assert "machine" not in found
        mine = recorded(results, release)
        divided = [
            record
            for record in summaries.read_divided(results / MACHINES[0])
            if record.release == release
        ]
        wanted = [asked for asked in answers.QUESTIONS if not asked.of_targets]
        assert [one["name"] for one in found["questions"]] == [asked.name for asked in wanted]
        for one, asked in zip(found["questions"], wanted, strict=True):
            sentence, sheet = asked.answer(divided if asked.of_parts else mine)
            assert (one["title"], one["sentence"]) == (asked.title, sentence)
            assert sorted(one["rows"]) == sorted(sheet.lines)
            assert one["columns"] == sheet.columns
            assert set(one["numbers"]) == sheet.numbers & set(sheet.columns)
    measured = [one["name"] for one in found["questions"] if one["rows"]]
    assert {"inference", "training", "attribution"} <= set(measured)


def test_two_releases_say_why_calls_changed(first: Machine) -> None:
    ((cell, says),) = first.document(f"pairs/{RELEASES[0]}/{RELEASES[-1]}")["reasons"]["rows"]
    assert cell == "resnet18, batch 1, default"
    assert says.startswith(f"{RELEASES[-1]} against {RELEASES[0]}, compiled over eager: 0.86 [")
    assert "It gains 2 ms in copy of weights before" in says
    assert says.endswith(f"(on {MACHINES[0]})")
    assert not first.document(f"pairs/{RELEASES[-2]}/{RELEASES[-1]}")["reasons"]["rows"]


def test_a_cell_shows_what_its_time_is_made_of(first: Machine) -> None:
    cells = first.document(f"launches/{RELEASES[-1]}/0")["cells"]
    parts = cells["resnet18, batch 1, default"]["parts"]
    assert parts["sentences"][0] == "From 3 launches that only divide calls (2026-11-27)."
    assert parts["sentences"][1].startswith("A call takes 10 ms (eager) and 12 ms (compiled)")
    assert len(parts["rows"][0]) == len(parts["columns"])
    bars = parts["bars"]["rows"]
    assert sum(eager for _, eager, _ in bars) == pytest.approx(0.010)
    assert sum(compiled for _, _, compiled in bars) == pytest.approx(0.012)
    assert cells["resnet18, batch 1, reduce-overhead"]["parts"] is None


def test_every_question_has_a_page(report: Report, parsed: dict[str, Parsed]) -> None:
    listed = report.manifest["questions"]
    assert [name for name, _, _ in listed] == answers.names()
    assert {page for _, _, page in listed} == {"answers.html", "generated.html"} <= set(parsed)
    text = parsed["tables.html"].text
    for machine in report.machines.values():
        for one in machine.document(f"answers/{RELEASES[-1]}")["questions"]:
            assert (one["sentence"] in text) == bool(one["rows"])


def code(report: Report, key: str) -> Any:
    return report.read(report.manifest["generated"][key])[key]


def test_generated_code_is_shown_once_for_all_machines(report: Report) -> None:
    targets = {row["target"]: row for row in rows(code(report, "targets"))}
    assert set(targets) >= {"cuda:sm80", "cuda:sm90"}
    assert targets["cuda:sm90"]["cells"] == 3, "the same on both machines"
    assert targets["cuda:sm90"]["without_code"] == 1
    assert targets["cuda:sm80"]["cells"] == 0
    assert "target/cuda:sm80" not in report.manifest["generated"]
    document = code(report, "target/cuda:sm90")
    assert document["points"] == list(RELEASES)
    groups = {(group["phase"], group["mode"]): group for group in document["groups"]}
    assert set(groups) == {("inference", "default"), ("inference", "reduce-overhead")}
    group = groups["inference", "default"]
    cell = "resnet18, batch 1"
    mine = [row for row in rows(group) if row["cell"] == cell]
    assert [(row["point"], row["launches"], row["before"]) for row in mine] == [
        (RELEASES[0], 5, ""),
        (RELEASES[1], 6, RELEASES[0]),
        (RELEASES[2], 7, RELEASES[1]),
    ]
    changes = [row for row in rows(group["changes"]) if row["count"] == "launches"]
    assert [(row["point"], row["old"], row["new"], row["difference"]) for row in changes] == [
        (RELEASES[1], 5, 6, "more"),
        (RELEASES[2], 6, 7, "more"),
    ]
    by_point = {row["point"]: row for row in rows(group["by_point"])}
    assert by_point[RELEASES[1]] == {
        **{"point": RELEASES[1], "cells": 2, "without_code": 1, "compared": 1, "changed": 1},
        **{"with_an_older": 0, "changed_since_older": 0},
        **{"launches: fewer": 0, "launches: more": 1},
        **{"Triton kernels: fewer": 0, "Triton kernels: more": 1},
        **{"bytes after fusion: fewer": 0, "bytes after fusion: more": 0},
    }
    # The release between has no code of one cell: what changed since is of either of the two.
    newest = by_point[RELEASES[2]]
    assert (newest["compared"], newest["changed"]) == (1, 1)
    assert (newest["with_an_older"], newest["changed_since_older"]) == (1, 0)
    (gap,) = [row for row in rows(group) if row["outcome"] != "ok"]
    assert (gap["workload"], gap["reason"]) == ("vit16x6x384", ATTACK)
    assert "there is code of 2 of 2 cells with v2.15" in group["sentence"]
    assert "In 3 releases, the launches of a cell became more 2 times." in group["sentence"]
    other = groups["inference", "reduce-overhead"]["sentence"]
    assert "there is code of 1 of 1 cell with v2.9" in other
    assert "In 2 releases, the launches with CUDA graphs of a cell did not change." in other


def test_generated_code_has_plain_tables(report: Report, parsed: dict[str, Parsed]) -> None:
    for group in code(report, "target/cuda:sm90")["groups"]:
        assert group["sentence"] in parsed["tables.html"].text


def test_every_comparison_is_that_of_the_report(results: Path, first: Machine) -> None:
    for before, after in itertools.combinations(RELEASES, 2):
        sides = [
            change.Side(release, [one.measurement for one in recorded(results, release)])
            for release in (before, after)
        ]
        comparison = change.compare(MACHINES[0], *sides)
        wanted = json.loads(documents.comparison_json(comparison))
        found = first.document(f"pairs/{before}/{after}")
        assert (found["cells"], found["compared"]) == (wanted["cells"], wanted["compared"])
        assert {row["figure"] for row in rows(found["means"])} == set(wanted["means"])
        for row in rows(found["means"]):
            mean = wanted["means"][row["figure"]]
            assert all(map(same, [row["mean"], row["mean_low"], row["mean_high"]], mean))
        shown = {(row["cell"], row["figure"]): row for row in rows(found["changes"])}
        effects = {
            (str(one.cell), name): effect
            for one in comparison.changes
            for name, effect in one.effects.items()
        }
        assert shown.keys() == effects.keys()
        for key, effect in effects.items():
            row = shown[key]
            assert row["verdict"] == effect.difference.value
            assert row["paired"] == effect.paired
            assert same(row["factor"], effect.factor.value)
            assert same(row["factor_low"], effect.factor.low)
            assert row["q"] == pytest.approx(effect.q, abs=1e-4)
        gaps = {row["cell"]: row["reason"] for row in rows(found["gaps"])}
        assert gaps == {str(one.cell): one.gap for one in comparison.changes if one.gap}


def test_every_launch_is_there_with_its_command(results: Path, first: Machine) -> None:
    for release in RELEASES:
        cells_of = first.document(f"launches/{release}/0")["cells"]
        found = recorded(results, release)
        assert len(cells_of) == len(found)
        for record in found:
            shown = cells_of[str(record.measurement.cell)]
            assert len(shown["rows"]) == len(record.measurement.launches)
            assert shown["command"] == axis.Releases().command(record.measurement.cell, release)
            if record.measurement.compiled:
                assert shown["compiled"]["breaks"] == [["model.py:3", ATTACK]]


def test_the_history_of_a_cell_has_each_release(first: Machine) -> None:
    line = first.lines()["resnet18, batch 1, default"]
    assert [row["point"] for row in rows(line)] == list(RELEASES)
    assert all(row["ratio_low"] <= row["ratio"] <= row["ratio_high"] for row in rows(line))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        # Three launches that differ by some percent decide nothing about 1 %.
        (
            (0.030, 0.0302, 0.0301),
            "v2.4 has the shortest compiled time (30 ms); the differences to the 2 other releases "
            "are within noise.",
        ),
        (
            (0.060, 0.030, 0.0302),
            "Not surely slower: v2.15; v2.4 takes 2.00 [2.00, 2.00] times as long.",
        ),
        (
            (0.030, 0.045, 0.060),
            "Slower: all 2 others; v2.15 takes 2.00 [2.00, 2.00] times as long.",
        ),
    ],
)
def test_a_cell_says_which_release_is_the_fastest(
    seconds: tuple[float, ...], said: str, tmp_path: Path
) -> None:
    folder = tmp_path / "results" / MACHINES[0]
    folder.mkdir(parents=True)
    for release, mode_s in zip(RELEASES, seconds, strict=True):
        file = records.path(folder, ledger.commit_of()[release], "virtualenv-py3.11")
        measured = examples.at(release, examples.measurement(scale=mode_s / 0.030))
        for measurement in (measured, examples.at(release, examples.measurement(mode=EAGER))):
            records.append(file, measurement)
    lines = Report(_built(tmp_path / "results", tmp_path / "site")).machines[MACHINES[0]].lines()
    assert said in lines["resnet18, batch 1, default"]["fastest"]
    assert lines["resnet18, batch 1, eager"]["fastest"] == ""


@pytest.mark.parametrize(("points", "slower"), [(2, True), (12, False)])
def test_a_release_is_slower_only_if_it_is_so_among_all_pairs(points: int, slower: bool) -> None:
    """Of many equal releases one looks fastest and one slowest."""
    change = {"verdict": "worse", "p": 0.01, "factor": 1.1, "factor_low": 1.02, "factor_high": 1.2}
    names = [str(number) for number in range(points)]
    found = list(fastest._others("a cell", names, 0, lambda *_: {"a cell": change}))
    assert [other.slower for other in found] == [slower] * (points - 1)


def test_the_overview_counts_what_its_table_shows(first: Machine) -> None:
    for release in RELEASES:
        for group in first.document(f"overview/{release}")["groups"]:
            shown = rows(group)
            assert len({row["label"] for row in shown}) == group["models"]
            for mode in group["modes"]:
                of_mode = [row for row in shown if row["mode"] == mode["mode"]]
                with_numbers = [row for row in of_mode if row["ratio"] is not None]
                assert len(with_numbers) == mode["cells"]
                assert len(of_mode) == mode["cells"] + mode["without"]
                for kind, number in mode["counts"].items():
                    assert sum(row["verdict"] == kind for row in with_numbers) == number


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A neighbour slowed one of the modes of a model, and both of another one."""
    folder = tmp_path_factory.mktemp("slowed") / "results"
    file = records.path(folder / "box", ledger.commit_of()[RELEASES[0]], "virtualenv-py3.11")
    file.parent.mkdir(parents=True)
    (file.parent / "machine.json").write_text(json.dumps({"machine": "box"}))
    for workload, factors in {"resnet18": (1.0, 1.4), "convnext": (1.4, 1.4)}.items():
        for mode, factor in zip(("default", "max-autotune"), factors, strict=True):
            measured = made(RELEASES[0], workload, mode)
            records.append(file, examples.calibrated(measured, 1e-4 * factor, factor))
    return Report(_built(folder, folder.parent / "site"))


def test_times_that_a_neighbour_made_longer_are_marked_wherever_they_stand(slowed: Report) -> None:
    (machine,) = slowed.machines.values()
    (group,) = machine.document(f"overview/{RELEASES[0]}")["groups"]
    factors = {row["cell"]: row["slowdown"] for row in rows(group)}
    assert factors == {
        "resnet18, batch 1, default": None,
        "resnet18, batch 1, max-autotune": 1.4,
        "convnext, batch 1, default": 1.4,
        "convnext, batch 1, max-autotune": 1.4,
    }
    assert {row["cell"]: row["slowdown"] for row in machine.figures(RELEASES[0])} == factors
    history = {name: line["rows"][0][-1] for name, line in machine.lines().items()}
    assert history == factors
    said = "mostly because of another virtual machine: 3 of the 4 cells"
    assert said in group["headline"]
    # No mode stands for another one that has as many cells.
    assert re.match(
        r"A compiled call takes on average \S+ .*? \(default\) and \S+ .*? \(max-autotune\) of ",
        group["headline"],
    )
    text = (slowed.folder / "tables.html").read_text()
    assert text.count("faster, slowed<") + text.count("faster, fastest, slowed<") == 3
    assert said in text


def test_modes_that_a_neighbour_did_not_slow_alike_are_not_compared(slowed: Report) -> None:
    (machine,) = slowed.machines.values()
    (group,) = machine.document(f"overview/{RELEASES[0]}")["groups"]
    shown = {row["cell"]: row for row in rows(group)}
    assert {name for name, row in shown.items() if row["fastest"]} == {
        name for name in shown if "convnext" in name
    }
    assert {row["cell"] for row in machine.figures(RELEASES[0]) if row["fastest"]} == {
        name for name in shown if "convnext" in name
    }
    baselines = {row["label"]: row["baseline_time"] for row in rows(group)}
    assert baselines == {
        "resnet18": "40 ms (default), 56 ms (max-autotune)",
        "convnext": "56 ms",
    }


def test_the_claims_describe_each_document_once(first: Machine) -> None:
    found = first.document(f"claims/{RELEASES[1]}")
    settings = {row["id"]: row["setting"] for row in rows(found["documents"])}
    assert settings == {one.id: one.setting for one in claims.read_documents()}
    assert {row["document"] for row in rows(found)} == set(settings)


def test_the_claims_are_those_of_the_command(results: Path, first: Machine) -> None:
    """They know the code that was generated on any machine."""
    code = summaries.read_generated(results)
    told = set()
    for release in RELEASES:
        mine = [one.measurement for one in recorded(results, release)]
        of_release = [one.measurement for one in code if one.release == release]
        wanted = claims.judge(mine, "cpu", of_release)
        found = {row["id"]: row for row in rows(first.document(f"claims/{release}"))}
        for one in wanted:
            shown = found[one.claim.id]
            assert (shown["verdict"], shown["reason"]) == (one.verdict.value, one.reason)
        without = claims.judge(mine, "cpu")
        told |= {one.claim.id for one, other in zip(wanted, without, strict=True) if one != other}
    assert told, "no claim needs generated code"


def test_the_newest_changes_are_the_largest_of_the_comparison(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "box"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps({"machine": "box"}))
    commits = ledger.commit_of()
    slower = {"resnet18": 1.4, "vit16x6x384": 1.8, "resnet50": 1.0}
    for release, changed in ((RELEASES[0], False), (RELEASES[1], True)):
        file = records.path(folder, commits[release], "virtualenv-py3.11")
        for workload, scale in slower.items():
            measured = examples.measurement(workload, scale=scale if changed else 1.0)
            records.append(file, examples.at(release, measured))
    build.build(tmp_path / "results", tmp_path / "site")
    machine = Report(tmp_path / "site").machines["box"]
    changes = machine.document(f"overview/{RELEASES[1]}")["changes"]
    assert changes["before"] == RELEASES[0]
    shown = rows(changes)
    assert [abs(math.log(row["factor"])) for row in shown] == sorted(
        (abs(math.log(row["factor"])) for row in shown), reverse=True
    )
    assert shown[0]["cell"].startswith("vit16x6x384")
    assert {row["verdict"] for row in shown} == {"worse"}
    assert {row["moved"] for row in shown if row["figure"] == "time ratio"} == {"compiled"}
    assert machine.document(f"overview/{RELEASES[0]}")["changes"] is None


# Shards


texts = st.text(max_size=50)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(texts, json_values, min_size=1, max_size=5))
def test_a_pack_gives_its_documents_back(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    encoded = [(key, packs.encode(value)) for key, value in content.items()]
    made: dict[str, str] = {}
    places = packs.add(encoded, 1 << 30, made)
    ((path, text),) = made.items()
    assert places == dict.fromkeys(content, Path(path).stem)
    file = tmp_path_factory.getbasetemp() / "pack.js"
    file.write_text(text, encoding="ascii")
    assert read_pack(file) == content
    assert "\n" not in text[:-1]


@given(
    st.lists(st.tuples(texts, texts), min_size=1, max_size=20, unique_by=lambda pair: pair[0]),
    st.integers(1, 400),
)
def test_one_more_document_changes_the_last_pack_only(
    content: list[tuple[str, str]], most_bytes: int
) -> None:
    encoded = [(key, packs.encode(value)) for key, value in content]
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    packs.add(encoded[:-1], most_bytes, before)
    places = packs.add(encoded, most_bytes, after)
    assert list(after.items())[: len(before) - 1] == list(before.items())[:-1]
    assert list(places) == [key for key, _ in content]


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_figure_is_a_number_or_null(value: float) -> None:
    found = packs.figure(value)
    if math.isfinite(value):
        assert found == pytest.approx(value, rel=10.0 ** (1 - packs.DIGITS))
    else:
        assert found is None
    assert packs.decode(packs.encode([found]).data) == [found]


@given(st.lists(examples.cells, max_size=30))
def test_no_two_cells_have_one_name(found: list[Cell]) -> None:
    names = cells.ids(found)
    assert names.keys() == set(found)
    assert len(set(names.values())) == len(names)
    assert all(cells.question(cell) in cells.ABOUT for cell in found)


@given(st.sets(examples.names, max_size=50), st.integers(1, 3000))
def test_buckets_are_few_and_stable(workloads: set[str], count: int) -> None:
    found = cells.buckets(workloads, count)
    assert found.keys() == workloads
    number = max(1, 2 ** math.ceil(math.log2(count / cells.MOST_IN_BUCKET)))
    assert all(0 <= bucket < number for bucket in found.values())
    again = cells.buckets([*workloads, "one-more"], count)
    assert {name: again[name] for name in workloads} == found


def test_the_same_results_make_the_same_site_from_the_cache_and_without(
    results: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.build(results, tmp_path / "again")
    monkeypatch.setattr(cached, "folder", lambda: tmp_path / "empty")
    build.build(results, tmp_path / "cold")
    first, *others = (
        {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.*")}
        for folder in (site, tmp_path / "again", tmp_path / "cold")
    )
    assert all(other == first for other in others)


def test_one_more_release_leaves_the_old_shards_and_reads_no_other_machine(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(results, tmp_path / "results")
    for machine in MACHINES:
        sealing.seal(tmp_path / "results" / machine)
    build.build(tmp_path / "results", tmp_path / "before")
    commits = ledger.commit_of()
    folder = tmp_path / "results" / MACHINES[0]
    file = records.path(folder, commits["2.14.0"], "virtualenv-py3.11")
    records.append(file, made("2.14.0", "resnet18", "default"))
    sealing.seal(folder)
    monkeypatch.setattr(build, "_MOST_WORKERS", 1)  # to see what is read and compared
    read: list[str] = []
    real = summaries.read_machine

    def watched(folder: Path) -> records.Records:
        read.append(folder.name)
        return real(folder)

    monkeypatch.setattr(summaries, "read_machine", watched)
    compared: list[tuple[str, str]] = []
    compare = change.compare_machines

    def counted(sides_of: dict[str, tuple[change.Side, change.Side]]) -> change.Comparison:
        ((before, after),) = sides_of.values()
        compared.append((before.release, after.release))
        return compare(sides_of)

    monkeypatch.setattr(change, "compare_machines", counted)
    build.build(tmp_path / "results", tmp_path / "after")
    assert read == [MACHINES[0]]
    assert compared
    assert all("2.14.0" in pair for pair in compared)
    before, after = Report(tmp_path / "before"), Report(tmp_path / "after")
    assert after.machines[MACHINES[0]].entry["points"] == [*RELEASES[:2], "2.14.0", RELEASES[2]]
    old = before.machines[MACHINES[0]]
    for one, other in itertools.combinations(RELEASES, 2):
        key = f"pairs/{one}/{other}"
        assert after.machines[MACHINES[0]].document(key) == old.document(key)


# Several machines of one class


def test_a_class_of_machines_has_an_assembled_history(tmp_path: Path) -> None:
    divided.write(tmp_path / "results")
    assert build.build(tmp_path / "results", tmp_path / "site") == []
    report = Report(tmp_path / "site")
    # The second box has more cells than the first.
    assert list(report.machines) == [divided.CLASS, "box.two", "box.one", "other"]
    whole, two, one, other = report.machines.values()
    assert whole.entry["machines"] == ["box.one", "box.two"]
    assert "machines" not in one.entry | other.entry
    assert whole.entry["title"] == "Box, 2 cores, 8 GB, 2 machines"
    homes = set(divided.HOMES.items())
    lines = whole.lines()
    assert {(line["workload"], line["machine"]) for line in lines.values()} == homes
    for row in whole.figures(RELEASES[0]):
        assert row["machine"] == divided.HOMES[row["workload"]]
    # Each cell has the history that it has on its machine.
    alone = {**one.lines(), **{name: line for name, line in two.lines().items() if "vit" in name}}
    for name, line in lines.items():
        assert rows(line) == rows(alone[name])
    pair = whole.document(f"pairs/{RELEASES[0]}/{RELEASES[-1]}")
    assert pair["compared"] == pair["cells"] == len(lines)
    (question,) = {line["question"] for line in lines.values() if line["compiles"]}
    means = whole.document(f"means/{question}")["batches"]
    assert {mode["cells"] for modes in means.values() for mode in modes.values()} == {2}
    assert "box.one, box.two" in " ".join(whole.document("trust")["text"])
    # An answer compares cells, so it is that of one machine.
    answered = whole.document(f"answers/{RELEASES[-1]}")
    assert answered["machine"] == "box.one"
    inference = next(each for each in answered["questions"] if each["name"] == "inference")
    assert {line[0] for line in inference["rows"]} == {"resnet18"}
    # From the cache, the same.
    build.build(tmp_path / "results", tmp_path / "again")
    assert Report(tmp_path / "again").everything() == report.everything()


@pytest.mark.usefixtures("empty_cache")
def test_no_number_of_releases_makes_the_site_endless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pair of releases is compared: a file with thousands would fill the disk."""
    divided.write(tmp_path / "results")
    monkeypatch.setattr(content, "MOST_POINTS", 2)
    problems = build.build(tmp_path / "results", tmp_path / "site")
    assert {str(one) for one in problems} == {
        f"{name}: 3 releases: the oldest 1 are left out" for name in divided.MEASURED
    }
    one = Report(tmp_path / "site").machines["box.one"]
    assert one.entry["points"] == list(RELEASES[1:])


def test_machines_of_one_class_with_the_same_cells_are_not_shown_twice(tmp_path: Path) -> None:
    commits = ledger.commit_of()
    for name in ("box.one", "box.two"):
        folder = tmp_path / "results" / name
        folder.mkdir(parents=True)
        (folder / "machine.json").write_text(json.dumps({"machine": name, "cpu": "Box"}))
        file = records.path(folder, commits[RELEASES[0]], "virtualenv-py3.11")
        records.append(file, made(RELEASES[0], "resnet18", "default"))
    build.build(tmp_path / "results", tmp_path / "site")
    assert list(Report(tmp_path / "site").machines) == ["box.one", "box.two"]


# What is broken or foreign


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    folder = tmp_path / "results" / MACHINES[0]
    (folder / "machine.json").write_text("{")
    file = next(iter(sorted(folder.glob("*.jsonl"))))
    with file.open("ab") as stream:
        stream.write(b'{"schema": 99}\n{"torn\n\xff\xfe\n')
    for number in range(2):  # each time, also with what the first time has kept
        problems = build.build(tmp_path / "results", tmp_path / f"site-{number}")
        # machine.json, and one line for the three lines of a file
        assert len(problems) == 2
        report = Report(tmp_path / f"site-{number}")
        assert len(report.problems) == 2
        assert set(report.machines) == set(MACHINES)
        text = (report.folder / "tables.html").read_text()
        assert "schema 99" in text
        assert "the first of 3 bad lines" in text
        assert file.name in text


def test_times_of_an_older_method_are_not_mixed_with_newer_ones(
    results: Path, tmp_path: Path
) -> None:
    shutil.copytree(results, tmp_path / "results")
    folder = tmp_path / "results" / MACHINES[1]
    newest = next(
        sha for sha, release in ledger.compute()[0].items() if release.version == RELEASES[-1]
    )
    one = made(RELEASES[-1], "resnet18", "default")
    again = [msgspec.structs.replace(each, method=METHOD) for each in one.launches]
    file = records.path(folder, newest, "virtualenv-py3.11")
    records.append(file, msgspec.structs.replace(one, launches=again))
    problems = build.build(tmp_path / "results", tmp_path / "site")
    report = Report(tmp_path / "site")
    # The site opens with the machine of the newer method.
    mine, others = report.machines.values()
    assert [mine.name, others.name] == list(MACHINES[::-1])
    timed = [row["cell"] for row in mine.figures(RELEASES[-1]) if row["outcome"] == "ok"]
    assert timed == [str(one.cell)]
    assert any("older method" in problem.reason for problem in problems)
    # From the cache, too.
    again_said = build.build(tmp_path / "results", tmp_path / "again")
    assert again_said == problems
    # A machine that has only older times shows them, with a note.
    assert others.entry["points"] == list(RELEASES)
    assert ["method 1" in one.entry["warning"] for one in (mine, others)] == [False, True]


def test_the_site_opens_with_the_machine_that_has_most(results: Path, tmp_path: Path) -> None:
    """As `report` and `asv compare` do. With equal numbers, the first by name."""
    assert list(Report(_built(results, tmp_path / "equal")).machines) == list(MACHINES)
    fewer = tmp_path / "results"
    shutil.copytree(results, fewer)
    min((fewer / MACHINES[0]).glob(f"*{parsing.SUFFIX}")).unlink()
    site = _built(fewer, tmp_path / "fewer")
    assert list(Report(site).machines) == list(MACHINES[::-1])
    page = (site / "index.html").read_text()
    assert page.index(MACHINES[1]) < page.index(MACHINES[0])


def _built(results: Path, folder: Path) -> Path:
    build.build(results, folder)
    return folder


def test_both_ends_of_the_heap_are_shown_where_both_were_measured(tmp_path: Path) -> None:
    commits = ledger.commit_of()
    folder = tmp_path / "results" / MACHINES[0]
    ends = [
        twin("settled", 0.02, 0.017, (0, 0), RELEASES[-1]),
        twin("default", 0.02, 0.0272, (0, 4870), RELEASES[-1]),
    ]
    one = twin("settled", 0.02, 0.017, (0, 0), RELEASES[0])
    for release, measurements in ((RELEASES[-1], ends), (RELEASES[0], [one])):
        file = records.path(folder, commits[release], "virtualenv-py3.11")
        file.parent.mkdir(parents=True, exist_ok=True)
        for measurement in measurements:
            records.append(file, measurement)
    build.build(tmp_path / "results", tmp_path / "site")
    machine = Report(tmp_path / "site").machines[MACHINES[0]]
    found = machine.document(f"ends/{RELEASES[-1]}")
    assert found["remedy"] == REMEDY
    (row,) = rows(found)
    assert row["default_mode_faults"] == 4870
    assert (row["cell"], row["cell_default"]) == (
        "m, batch 1, default",
        "m, batch 1, default, default-heap",
    )
    assert f"ends/{RELEASES[0]}" not in machine.keys
    lines = machine.lines()
    assert lines[row["cell"]]["other_end"] == row["cell_default"]
    assert lines[row["cell_default"]]["other_end"] == row["cell"]


def test_nothing_measured_is_a_site_too(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    build.build(tmp_path / "results", tmp_path / "site")
    assert "nox -s bench" in (tmp_path / "site" / "index.html").read_text()
    assert Report(tmp_path / "site").machines == {}


# The axis


def test_the_command_of_a_cell_selects_that_cell() -> None:
    from re import search

    releases = axis.Releases()
    for cell in matrix.core_cells():
        pattern = matrix.pattern(cell)
        assert pattern is not None
        selected = {
            question.cell(*point)
            for question in matrix.QUESTIONS.values()
            for point in question.points
            if search(pattern, f"{question.name}.track_x({', '.join(map(repr, point))})")
        }
        assert selected == {cell}
        words = shlex.split(releases.command(cell, "2.9.1"))
        assert words == ["asv", "run", "v2.9.1^!", "--bench", pattern]
    assert matrix.pattern(Cell("somebody-elses", 1, "default")) is None
    assert releases.command(Cell("somebody-elses", 1, "default"), "2.9.1") == ""


def test_the_same_report_is_made_of_commits(tmp_path: Path) -> None:
    """The commits stand in the order of their dates, with their messages."""
    clone = tmp_path / "pytorch"
    clone.mkdir()

    def git(*arguments: str, date: str = "") -> str:
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        names = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        names |= {f"GIT_{who}_NAME": "A" for who in ("AUTHOR", "COMMITTER")}
        names |= {f"GIT_{who}_EMAIL": "a@b" for who in ("AUTHOR", "COMMITTER")}
        done = subprocess.run(
            ["git", *arguments], cwd=clone, env={**names, **dates}, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    git("init", "--quiet")
    commits = []
    for number, day in enumerate(("2026-01-02", "2026-01-03")):
        git("commit", "--allow-empty", "-m", f"change {number}", date=f"{day}T00:00:00+0000")
        commits.append(git("rev-parse", "HEAD"))
    folder = tmp_path / "results" / MACHINES[0]
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps({"machine": folder.name}))
    for commit in reversed(commits):
        file = records.path(folder, commit, "virtualenv-py3.11")
        records.append(file, made("2.9.1", "resnet18", "default"))
    assert (
        build.build(tmp_path / "results", tmp_path / "site", axis=axis.Commits(Clone(clone))) == []
    )
    report = Report(tmp_path / "site")
    machine = report.machines[MACHINES[0]]
    points = [commit[:8] for commit in commits]
    assert report.manifest["noun"] == "commit"
    assert machine.entry["points"] == points
    assert [report.manifest["points"][point]["note"] for point in points] == [
        "change 0",
        "change 1",
    ]
    assert machine.document(f"pairs/{points[0]}/{points[1]}")["compared"] == 1
    shown = machine.document(f"launches/{points[0]}/0")["cells"]["resnet18, batch 1, default"]
    assert shown["command"].startswith(f"asv --config asv.commits.conf.json run {points[0]}^! ")
    assert not (tmp_path / "site" / "releases.html").exists()


# Names of machines


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        (("AMD EPYC (family 25 model 1)", "2", "24 GiB", "cpu"), "AMD EPYC Milan, 2 cores, 24 GB"),
        (
            ("Intel Xeon Processor (family 6 model 207)", "2", "24 GiB", "cpu"),
            "Intel Xeon Emerald Rapids, 2 cores, 24 GB",
        ),
        (
            ("AMD EPYC (family 99 model 7)", "1", "4 GiB", "cpu"),
            "AMD EPYC (family 99 model 7), 1 core, 4 GB",
        ),
        (
            ("AMD Ryzen 9 (family 25 model 1)", "16", "64 GiB", "NVIDIA H100"),
            "NVIDIA H100, AMD Ryzen 9, 16 cores, 64 GB",
        ),
    ],
)
def test_machines_have_names_that_people_use(facts: tuple[str, ...], wanted: str) -> None:
    fields = dict(zip(("cpu", "num_cpu", "ram", "device"), facts, strict=True))
    assert hardware.title(fields, "slug") == wanted


def test_a_machine_without_facts_keeps_its_slug() -> None:
    assert hardware.title({}, "slug") == "slug"
    assert hardware.title({"num_cpu": "2"}, "slug") == "slug"


# Payoff and history


bounds = st.floats(0.1, 10)


@given(bounds, st.floats(1, 2), st.floats(1, 2))
def test_a_payoff_claims_nothing_that_its_interval_denies(
    value: float, below: float, above: float
) -> None:
    interval = Interval(value, value / below, value * above)
    found = payoff(interval)
    assert (found is Payoff.GAIN) == (interval.high < 1)
    assert (found is Payoff.LOSS) == (interval.low > 1)


def test_an_unknown_interval_decides_nothing() -> None:
    assert payoff(Interval(0.5, float("nan"), float("nan"))) is Payoff.UNKNOWN
    assert payoff(None) is Payoff.UNKNOWN
    assert payoff(Interval(1.0, 0.97, 1.02)) is Payoff.NONE
    assert payoff(Interval(1.0, 0.90, 1.10)) is Payoff.UNKNOWN


def row(mode: str, ratio: tuple[float, float, float], release: str = "2.9.1") -> summary.Row:
    cell = Cell("resnet18", 1, mode)
    interval = Interval(*ratio)
    return summary.Row("m", release, cell, Outcome(Status.OK), interval, interval, interval)


def test_modes_that_cannot_be_told_apart_are_both_best() -> None:
    rows = [
        row("default", (0.80, 0.78, 0.82)),
        row("reduce-overhead", (0.81, 0.79, 0.83)),
        row("max-autotune", (0.90, 0.88, 0.92)),
    ]
    assert {cell.mode for cell in best(rows)} == {"default", "reduce-overhead"}
    assert best([row("default", (1.0, 0.95, 1.05))]) == []
    # What may be as fast, and may be slower than eager, is no gain.
    rows.append(row("max-autotune-no-cudagraphs", (0.95, 0.60, 1.40)))
    assert {cell.mode for cell in best(rows)} == {"default", "reduce-overhead"}
    first, *others = best(rows, gains=False)
    assert first.mode == "default"
    assert [cell.mode for cell in others] == ["reduce-overhead", "max-autotune-no-cudagraphs"]
    # A mode of which no launch counts decides nothing, and the others keep their order.
    nothing = row("default", (math.nan, math.nan, math.nan))
    rows = [row("default", (0.9, 0.89, 0.91)), nothing, row("max-autotune", (0.6, 0.59, 0.61))]
    assert [cell.mode for cell in best(rows, gains=False)] == ["max-autotune"]


def test_a_cohort_is_what_every_release_has() -> None:
    rows = [
        row("default", (0.8, 0.7, 0.9), "2.4.1"),
        row("default", (0.4, 0.3, 0.5), "2.9.1"),
        row("max-autotune", (0.1, 0.1, 0.1), "2.9.1"),
    ]
    found = history.cohort(rows, ["2.4.1", "2.9.1"])
    assert {cell.mode for cell in found.cells} == {"default"}
    assert found.of == 2
    means = history.means(rows, ["2.4.1", "2.9.1"], found.cells, {rows[0].machine: 0.0})
    assert means["2.9.1", "ratio"].value == pytest.approx(0.4)
    assert means["2.4.1", "eager"].value == pytest.approx(1)
    assert means["2.9.1", "eager"].value == pytest.approx(0.5)


# ASV's own page


@pytest.fixture
def asv_page(tmp_path: Path) -> Path:
    shutil.copytree(Path(asv.__file__).parent / "www", tmp_path / "html")
    publish.localise(tmp_path / "html", "torch.compile")
    return tmp_path / "html"


def test_asvs_page_loads_nothing_from_other_hosts(asv_page: Path) -> None:
    page = Parsed(asv_page / "index.html")
    outside = [link for link in page.links if "//" in link]
    assert outside == ["https://github.com/airspeed-velocity/asv/"]  # a link that is not loaded
    for link in page.links:
        if "//" not in link and not link.startswith(("#", "report/", "regressions.xml")):
            assert (asv_page / link).is_file(), link
    assert "report/index.html" in page.links
    assert not page.handlers or set(page.handlers) == {"style"}
    text = (asv_page / "index.html").read_text()
    for wanted in (publish.POLICY, *(file.name for file in publish.vendored())):
        assert wanted in text, "the page of this ASV has another form"


def test_vendored_files_have_their_hashes(asv_page: Path) -> None:
    for file in publish.vendored():
        method, _, wanted = file.integrity.partition("-")
        digest = hashlib.new(method, (asv_page / "vendor" / file.name).read_bytes()).digest()
        assert base64.b64encode(digest).decode() == wanted


def test_the_vendored_files_of_the_report_have_their_hashes(site: Path) -> None:
    listed = msgspec.toml.decode(Path(build.__file__).with_name("vendor.toml").read_bytes())["file"]
    for file in listed:
        method, _, wanted = file["integrity"].partition("-")
        digest = hashlib.new(method, (site / "vendor" / file["name"]).read_bytes()).digest()
        assert base64.b64encode(digest).decode() == wanted
    shipped = {file.name for file in (site / "vendor").iterdir()}
    assert shipped == {file["name"] for file in listed} | {"uPlot.txt"}


def test_a_release_s_page_says_what_it_changed(site: Path, report: Report) -> None:
    before, after = RELEASES[-2:]
    most = next(iter(report.machines.values()))
    pair = most.document(f"pairs/{before}/{after}")
    text = (site / f"release-{'.'.join(after.split('.')[:2])}.html").read_text()
    assert escape(pair["sentence"]) in text
    for line in (*pair["whole"]["rows"], *pair["most"]["rows"]):
        assert all(escape(cell) in text for cell in line)
    assert f"before={before}&amp;after={after}" in text
    (compiled,) = (row for row in rows(pair["means"]) if row["figure"] == "compiled")
    low, value, high = (compiled[f"mean{part}"] for part in ("_low", "", "_high"))
    mean = str(Interval(value, low, high))
    said = {
        "not changed": f"compiled calls are as fast as before, within 5% ({mean}).",
        "worse": f"compiled calls take {mean} times as long.",
    }[compiled["judged"]]
    assert text.count(said) == 1


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        (1.6, "On average the ratio of a compiled call to eager is 1.60 ["),
        (1.0, "Of what was compared, nothing is on average surely worse by more than 5%."),
    ],
)
def test_a_release_s_page_claims_nothing_about_times_of_two_runs(
    tmp_path: Path, scale: float, said: str
) -> None:
    """The ratio of 2.9.1 is larger or the same, and no time is compared."""
    folder = tmp_path / "results" / "box"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps({"machine": "box"}))
    for release, slower in (("2.8.0", 1.0), ("2.9.1", scale)):
        measured = examples.at(release, examples.measurement(scale=slower))
        apart = [msgspec.structs.replace(one, round=0) for one in measured.launches]
        file = records.path(folder, ledger.commit_of()[release], "virtualenv-py3.11")
        records.append(file, msgspec.structs.replace(measured, launches=apart))
    text = (_built(tmp_path / "results", tmp_path / "site") / "release-2.9.html").read_text()
    assert said in text
    assert "were not measured in turns" in text
    assert ("nothing is on average surely worse by more than" in text) is (scale == 1.0)


def test_a_link_to_a_release_s_page_names_the_releases_of_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "box"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps({"machine": "box"}))
    for release in ("2.8.0", "2.9.1"):
        file = records.path(folder, ledger.commit_of()[release], "virtualenv-py3.11")
        records.append(file, made(release, "resnet18", "default"))
    text = (_built(tmp_path / "results", tmp_path / "site") / "releases.html").read_text()
    link = '<a href="release-2.9.html">What changed for torch.compile from v2.8 to v2.9</a>'
    assert text.count(link) == 2, "2.9.0 and 2.9.1 have one page"


def test_the_words_of_the_site_are_explained_on_it(tmp_path: Path) -> None:
    (tmp_path / "docs" / "stories").mkdir(parents=True)
    (tmp_path / "docs" / "glossary.md").write_text(
        "# Glossary\n\n| word |\n|---|\n| **cell** [how](method.md), [all](workloads.md) |\n"
    )
    (tmp_path / "docs" / "method.md").write_text("# Method\n\n![A launch](launch.svg)\n")
    (tmp_path / "results").mkdir()
    build.build(tmp_path / "results", tmp_path / "site", told=tmp_path / "docs" / "stories")
    words, method = (Parsed(tmp_path / "site" / f"{name}.html") for name in ("glossary", "method"))
    assert "cell how, all" in words.text
    assert "workloads.md" not in words.links
    assert "img" not in method.tags
    for page in (words, method, Parsed(tmp_path / "site" / "index.html")):
        assert {"glossary.html", "method.html"} <= set(page.links)


@pytest.mark.parametrize(
    ("scales", "said"),
    [
        ((0.5, 0.5, 0.5), "Compiling surely pays in all 3 releases."),
        (
            (2.0, 0.5, 0.5),
            "Compiling surely pays in every measured release since v2.9; v2.4 is slower.",
        ),
        (
            (1.0, 0.5, 0.5),
            "Compiling surely pays in every measured release since v2.9; the interval of v2.4 "
            "reaches 1.",
        ),
        ((0.5, 0.5, 2.0), "The last release in which compiling surely pays is v2.9."),
        ((2.0, 2.0, 2.0), "Compiling surely pays in none of 3 releases."),
        ((0.5,), ""),
    ],
)
def test_a_cell_says_since_when_it_pays(scales: tuple[float, ...], said: str) -> None:
    rows = [
        row("default", (scale, 0.9 * scale, 1.1 * scale), release)
        for scale, release in zip(scales, RELEASES, strict=False)
    ]
    assert figures.since(axis.Releases(), rows) == said


@pytest.mark.parametrize(
    "differs", [{"baseline": "eager-float32"}, {"protocol": "data-inside"}, {"start": "uncached"}]
)
def test_only_a_ratio_of_compiling_says_since_when_it_pays(differs: dict[str, str]) -> None:
    rows = [row("default", (0.5, 0.4, 0.6), release) for release in RELEASES]
    cell = msgspec.structs.replace(rows[0].cell, **differs)
    others = [msgspec.structs.replace(one, cell=cell) for one in rows]
    assert figures.since(axis.Releases(), rows)
    assert figures.since(axis.Releases(), others) == ""


def test_two_machines_of_a_class_are_not_the_two_ends_of_the_heap(tmp_path: Path) -> None:
    divided.write(tmp_path / "results")
    commits = ledger.commit_of()
    default = Cell("resnet18", 1, "default", allocator="default-heap")
    for machine, releases in {"box.one": RELEASES[:1], "box.two": RELEASES}.items():
        for release in releases:
            made = msgspec.structs.replace(examples.measurement(), cell=default)
            file = records.path(tmp_path / "results" / machine, commits[release], "env-py3.11")
            records.append(file, examples.at(release, made))
    assert build.build(tmp_path / "results", tmp_path / "site") == []
    machines = Report(tmp_path / "site").machines
    name = "resnet18, batch 1, default"
    ends = {box: machines[box].lines()[name]["other_end"] for box in ("box.one", divided.CLASS)}
    assert ends == {"box.one": f"{name}, default-heap", divided.CLASS: ""}


def test_a_minor_release_has_one_page_about_its_newest_patch(tmp_path: Path) -> None:
    commits = ledger.commit_of()
    folder = tmp_path / "results" / "box"
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps({"machine": "box"}))
    for release in ("2.8.0", "2.9.0", "2.9.1"):
        file = records.path(folder, commits[release], "virtualenv-py3.11")
        records.append(file, made(release, "resnet18", "default"))
    build.build(tmp_path / "results", tmp_path / "site")
    pages = {file.name: file.read_text() for file in (tmp_path / "site").glob("release-*.html")}
    assert list(pages) == ["release-2.9.html"]
    assert "at=2.9.1" in pages["release-2.9.html"]
    assert "before=2.8.0" in pages["release-2.9.html"], "and not another patch of 2.9"
