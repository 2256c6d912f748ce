"""The site as files: links, escaping, downloads, and the same output for the same results."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import posixpath
import shlex
import shutil
from html.parser import HTMLParser
from pathlib import Path

import asv
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix
from torchcompile_suite.analysis import claims, history, summary
from torchcompile_suite.analysis.ends import REMEDY
from torchcompile_suite.analysis.payoff import Payoff, best, payoff
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.asv import pages
from torchcompile_suite.cell import METHOD, Cell, Compiled, GraphBreak, Measurement, Outcome, Status
from torchcompile_suite.modes import MODES
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import records
from torchcompile_suite.site import build, paths, render
from torchcompile_suite.site.page import Page
from torchcompile_suite.site.pages.cell import reproduce

from . import examples
from .examples import twin

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
    commits = {release.version: sha for sha, release in ledger.compute()[0].items()}
    for machine in MACHINES:
        folder = results / machine
        folder.mkdir(parents=True)
        (folder / "machine.json").write_text(json.dumps({"machine": machine, "cpu": ATTACK}))
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


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "report"
    content = build.build(results, folder)
    assert content.problems == []
    return folder


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
    return {str(file.relative_to(site)): Parsed(file) for file in site.rglob("*.html")}


def test_every_link_leads_somewhere(site: Path, parsed: dict[str, Parsed]) -> None:
    for name, page in parsed.items():
        for link in page.links:
            path, _, fragment = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path or name))
            target = name if not path else target
            if target in ("../index.html", "../swallow.ico"):
                continue  # ASV's own
            assert (site / target).is_file(), f"{name} -> {link}"
            if fragment:
                assert fragment in parsed[target].ids, f"{name} -> {link}"


def test_no_page_has_a_script_or_markup_of_a_result_file(parsed: dict[str, Parsed]) -> None:
    assert any("alert('x')" in page.text for page in parsed.values())
    for name, page in parsed.items():
        assert not {"script", "img", "iframe", "object", "form"} & set(page.tags), name
        assert not page.handlers, name


def test_every_page_forbids_files_of_other_hosts(site: Path) -> None:
    for file in site.rglob("*.html"):
        assert f'content="{render.POLICY.replace(chr(39), "&#39;")}"' in file.read_text()


def test_every_question_has_a_page_for_each_machine(site: Path) -> None:
    for machine in MACHINES:
        for wanted in (
            paths.payoff(machine, "2.15.0", 1),
            paths.payoff(machine, "2.4.1", 4),
            paths.history(machine),
            paths.changes(machine, "2.4.1", "2.15.0"),
            paths.compiling(machine, "2.9.1"),
            paths.compiler(machine, "2.9.1"),
            paths.claims(machine, "2.9.1"),
            paths.trust(machine),
            paths.cell(machine, Cell("resnet18", 1, "default")),
        ):
            assert (site / wanted).is_file()
    assert (site / paths.OVERVIEW).is_file()
    assert (site / paths.RELEASES).is_file()


def test_data_goes_with_every_page_that_has_any(site: Path) -> None:
    file = site / paths.payoff(MACHINES[0], "2.15.0", 1)
    lines = json.loads(file.with_suffix(".json").read_text())
    with file.with_suffix(".csv").open(newline="") as stream:
        table = list(csv.DictReader(stream))
    assert len(lines) == len(table) == 2 * (len(MODES) - 1) + 1
    for line, row in zip(lines, table, strict=True):
        assert row["workload"] == line["workload"]
        assert row["ratio"] == ("" if line["ratio"] is None else repr(line["ratio"]))
    cell = site / paths.cell(MACHINES[0], Cell("resnet18", 1, "default"))
    processes = json.loads(cell.with_suffix(".json").read_text())
    assert len(processes) == 3 * len(RELEASES)
    assert all(len(each["pairs_s"]) == 15 for each in processes)


def test_the_claims_page_describes_each_document_once(
    site: Path, parsed: dict[str, Parsed]
) -> None:
    page = paths.claims(MACHINES[0], "2.9.1")
    text = parsed[page].text
    data = json.loads((site / page).with_suffix(".json").read_text())
    for document in claims.read_documents():
        assert text.count(document.setting) == 1
        (settings,) = {line["document_setting"] for line in data if line["document"] == document.id}
        assert settings == document.setting


def test_no_text_in_a_csv_file_is_a_formula() -> None:
    page = Page("x.html", "", "", [], data=[{"reason": '=HYPERLINK("http://x")', "value": -1.5}])
    assert render.as_csv(page) == 'reason,value\n"\'=HYPERLINK(""http://x"")",-1.5\n'


def test_the_same_results_make_the_same_site(results: Path, site: Path, tmp_path: Path) -> None:
    build.build(results, tmp_path / "again")
    first = {str(f.relative_to(site)): f.read_bytes() for f in site.rglob("*") if f.is_file()}
    again = {
        str(f.relative_to(tmp_path / "again")): f.read_bytes()
        for f in (tmp_path / "again").rglob("*")
        if f.is_file()
    }
    assert first == again


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    folder = tmp_path / "results" / MACHINES[0]
    (folder / "machine.json").write_text("{")
    file = next(iter(sorted(folder.glob("*.jsonl"))))
    with file.open("ab") as stream:
        stream.write(b'{"schema": 99}\n{"torn\n\xff\xfe\n')
    content = build.build(tmp_path / "results", tmp_path / "site")
    assert len(content.problems) == 2  # machine.json, and one line for the three lines of a file
    text = (tmp_path / "site" / paths.trust(MACHINES[1])).read_text()
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
    content = build.build(tmp_path / "results", tmp_path / "site")
    # The site opens with the machine of the newer method.
    mine, others = content.machines
    assert [mine.name, others.name] == list(MACHINES[::-1])
    timed = [each.measurement for each in mine.entries if each.row.outcome.ok]
    assert [(each.environment.torch, each.cell) for each in timed if each.environment] == [
        (f"{RELEASES[-1]}+cpu", one.cell)
    ]
    assert any("older method" in problem.reason for problem in content.problems)
    # A machine that has only older times shows them, with a note.
    assert len(others.releases) == len(RELEASES)
    texts = [(tmp_path / "site" / paths.trust(name)).read_text() for name in MACHINES]
    assert ["by method 1" in text for text in texts] == [True, False]


def test_both_ends_of_the_heap_stand_on_the_page_of_the_payoff(tmp_path: Path) -> None:
    """Only a release in which a cell was measured at both ends has the section."""
    commits = {release.version: sha for sha, release in ledger.compute()[0].items()}
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
    with_both, with_one = (
        Parsed(tmp_path / "site" / paths.payoff(MACHINES[0], release, 1))
        for release in (RELEASES[-1], RELEASES[0])
    )
    assert "heap" in with_both.ids
    assert "4,870" in with_both.text
    assert REMEDY in with_both.text
    assert "heap" not in with_one.ids


def test_nothing_measured_is_a_site_too(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    build.build(tmp_path / "results", tmp_path / "site")
    assert "nox -s bench" in (tmp_path / "site" / paths.OVERVIEW).read_text()


def test_the_command_on_a_cell_page_selects_that_cell() -> None:
    from re import search

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
        words = shlex.split(reproduce(cell, "2.9.1"))
        assert words == ["asv", "run", "v2.9.1^!", "--bench", pattern]
    assert matrix.pattern(Cell("somebody-elses", 1, "default")) is None


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


def test_a_cohort_is_what_every_release_has() -> None:
    rows = [
        row("default", (0.8, 0.7, 0.9), "2.4.1"),
        row("default", (0.4, 0.3, 0.5), "2.9.1"),
        row("max-autotune", (0.1, 0.1, 0.1), "2.9.1"),
    ]
    found = history.cohort(rows, ["2.4.1", "2.9.1"])
    assert {cell.mode for cell in found.cells} == {"default"}
    assert found.of == 2
    points = history.mean_points(rows, ["2.4.1", "2.9.1"], found.cells, 0.0)
    by = {(point.release, point.series): point.value.value for point in points}
    assert by["2.9.1", "ratio"] == pytest.approx(0.4)
    assert by["2.4.1", "eager"] == pytest.approx(1)
    assert by["2.9.1", "eager"] == pytest.approx(0.5)


# Permalinks


@given(st.text())
def test_a_name_of_a_file_is_safe(text: str) -> None:
    name = paths.slug(text)
    assert name
    assert not name.startswith(".")
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def test_similar_names_get_different_files() -> None:
    assert len({paths.slug(text) for text in ("a b", "a-b", "a/b", "../a-b", "a-b-")}) == 5


# ASV's own page


@pytest.fixture
def asv_page(tmp_path: Path) -> Path:
    shutil.copytree(Path(asv.__file__).parent / "www", tmp_path / "html")
    pages.localise(tmp_path / "html", "torch.compile")
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


def test_vendored_files_have_their_hashes(asv_page: Path) -> None:
    for file in pages.vendored():
        method, _, wanted = file.integrity.partition("-")
        digest = hashlib.new(method, (asv_page / "vendor" / file.name).read_bytes()).digest()
        assert base64.b64encode(digest).decode() == wanted


def test_another_asv_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<script src="https://cdn.example/new-library.js"></script>'
    )
    with pytest.raises(pages.SiteError, match=r"new-library\.js") as error:
        pages.localise(tmp_path, "torch.compile")
    assert "\n" not in str(error.value)
