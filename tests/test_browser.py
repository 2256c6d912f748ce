"""The published site in a real Chromium without a network: ASV's pages and the report.

Chromium loads a page of each kind for each machine. tests/test_site.py checks the links, the policy
and the absence of scripts on every page of a site.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from torchcompile_suite.analysis import statistics
from torchcompile_suite.asv import derived
from torchcompile_suite.cell import Cell, Launch
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import asv_files, records

from .conftest import ROOT
from .site import DESKTOP, Visit, served, visited

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ASV_PAGES = ["", "#/summarylist", "#/regressions", "#inference.Inference.track_latency"]
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PHONE = {"width": 390, "height": 844}
# Guards against a hanging test; generous, because the machine may be busy.
PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that `asv publish` makes from the committed results, in a subfolder of a host."""
    clone = tmp_path_factory.mktemp("publish")
    for name in ("asv.conf.json", "benchmarks", "src", "results"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, clone / name)
    subprocess.run([sys.executable, "-m", "asv", "publish"], cwd=clone, check=True, timeout=800)
    host = tmp_path_factory.mktemp("host")
    (clone / "html").rename(host / "sub-path")
    return host / "sub-path"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site.parent) as host:
        yield f"{host}{site.name}/"


@pytest.fixture
def visit(chromium: Browser, address: str) -> Iterator[Visit]:
    with visited(chromium, address) as visit:
        yield visit


# Differences that do not count: the time of publication, the position of a drawing's parts (another
# version of the drawing library moves them), and the last digits (another processor rounds them).
_MADE_AT = re.compile(r'"(timestamp|generated)": ?\S+|<updated>[^<]*</updated>')
_PLACED = re.compile(r"<(svg|path|g|line|rect|clipPath)\b[^>]*>")
_DECIMALS = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")


def differences(one: Path, other: Path) -> list[str]:
    """Files that are in one folder only, or whose contents differ."""
    names = [
        {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
        for folder in (one, other)
    ]
    return sorted(names[0] ^ names[1]) + sorted(
        name for name in names[0] & names[1] if not same(one / name, other / name)
    )


def same(one: Path, other: Path) -> bool:
    contents = [file.read_bytes() for file in (one, other)]
    if contents[0] == contents[1]:
        return True
    if one.suffix not in {".html", ".json", ".csv", ".xml"}:
        return False
    if one.name == "regressions.json":
        # Their order is that in which the processes of ASV finished.
        regressions = [json.loads(content)["regressions"] for content in contents]
        return sorted(map(str, regressions[0])) == sorted(map(str, regressions[1]))
    texts = [_PLACED.sub("", _MADE_AT.sub("", content.decode())) for content in contents]
    if _DECIMALS.sub("#", texts[0]) != _DECIMALS.sub("#", texts[1]):
        return False
    numbers = [[float(number) for number in _DECIMALS.findall(text)] for text in texts]
    return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(*numbers, strict=True))


def test_the_committed_site_is_made_of_the_committed_results(site: Path) -> None:
    assert differences(ROOT / "html", site) == [], (
        "html/ is not what results/ make; run: asv publish, and commit html/"
    )


def test_another_number_or_word_is_a_difference(tmp_path: Path) -> None:
    texts = {"a": '<p>1.5 calls</p>"timestamp": 1', "b": '<p>1.5 calls</p>"timestamp": 2'}
    texts |= {"c": "<p>1.6 calls</p>", "d": "<p>1.5 goals</p>"}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.html").write_text(text)
    assert differences(tmp_path / "a", tmp_path / "b") == []
    assert differences(tmp_path / "a", tmp_path / "c") == ["x.html"]
    assert differences(tmp_path / "a", tmp_path / "d") == ["x.html"]
    assert differences(tmp_path / "a", tmp_path) != []


def _with_results() -> set[str]:
    """The benchmarks that have values of their current version."""
    results = ROOT / "results"
    benchmarks = asv_files.recorded_benchmarks(results)
    machines = results.glob("*/machine.json")
    commits = ledger.compute()[0]
    contents = [
        json.loads(file.content)
        for file in derived.derive(results, machines, commits, ROOT / "benchmarks", [])
    ]
    return {
        name
        for content in contents
        for name, columns in content["results"].items()
        if columns[content["result_columns"].index("version")] == benchmarks[name]["version"]
    }


@pytest.mark.parametrize("fragment", ASV_PAGES)
def test_asvs_pages_work_without_a_network(visit: Visit, address: str, fragment: str) -> None:
    page = visit.open(f"{address}index.html{fragment}")
    expect(page.locator("#nav-li-report a")).to_be_visible(timeout=PATIENCE_MS)
    if not fragment:
        containers = page.locator("#summarygrid-display .benchmark-container")
        expect(containers).to_have_count(len(_with_results()), timeout=PATIENCE_MS)
        links = [container.get_attribute("href") for container in containers.all()]
        assert sorted(links) == [f"#{name}" for name in sorted(_with_results())]
    elif "summarylist" in fragment:
        rows = page.locator("#summarylist-body table tbody tr")
        expect(rows.nth(10)).to_be_visible(timeout=PATIENCE_MS)
    elif "regressions" in fragment:
        table = page.locator("#regressions-body table").first
        expect(table).to_be_visible(timeout=PATIENCE_MS)
    elif "track_latency" in fragment:
        canvas = page.locator("#main-graph canvas").first
        expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_load_state("networkidle")
    assert visit.faults == []


class Elements(HTMLParser):
    """Whether a page has a heading, and a paragraph with its answer."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.heading = self.answer = False
        self._within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.heading |= tag == "h1"
        if "answer" in (dict(attributes).get("class") or "").split():
            self._within.append(tag)
        self.answer |= tag == "p" and bool(self._within)

    def handle_endtag(self, tag: str) -> None:
        if self._within and tag == self._within[-1]:
            self._within.pop()


def test_every_page_of_the_report_has_a_heading_and_an_answer(site: Path) -> None:
    files = sorted((site / "report").rglob("*.html"))
    assert len(files) > 200
    for file in files:
        elements = Elements(file.read_text())
        assert elements.heading, file
        assert elements.answer, file


def pages_of(machine: Path) -> list[Path]:
    """A page of each kind about one machine."""
    folders = ("verdict", "changes", "compiling", "compiler", "claims")
    pages = [max((machine / folder).glob("*.html")) for folder in folders]
    cell = min((machine / "cell").glob("resnet18*.html"))
    return [*pages, machine / "history.html", machine / "trust.html", cell]


@pytest.fixture
def kinds(site: Path) -> list[str]:
    """A page of each kind: about the machine with the first name, and about no machine."""
    machine = min(machines(site))
    common = [site / "report" / "index.html", site / "report" / "releases.html"]
    return [str(page.relative_to(site)) for page in (*pages_of(machine), *common)]


def machines(site: Path) -> list[Path]:
    return [folder for folder in (site / "report").iterdir() if (folder / "trust.html").is_file()]


def test_a_page_of_each_kind_loads_and_asks_no_other_host(
    visit: Visit, address: str, site: Path, kinds: list[str]
) -> None:
    names = {str(page.relative_to(site)) for folder in machines(site) for page in pages_of(folder)}
    for name in sorted(names | set(kinds)):
        page = visit.open(address + name)
        assert page.locator("h1").is_visible()
        assert page.locator(".answer p").count() >= 1, name
    assert visit.faults == []


@pytest.mark.parametrize(
    ("scheme", "rules"),
    [
        ("light", {"type": "tag", "values": WCAG}),
        # Nothing but the colors depends on the scheme.
        ("dark", {"type": "rule", "values": ["color-contrast"]}),
    ],
    ids=["light", "dark"],
)
def test_pages_are_accessible(
    visit: Visit, address: str, kinds: list[str], scheme: str, rules: dict[str, object]
) -> None:
    visit.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for name in kinds:
        page = visit.open(address + name)
        # The page's policy forbids scripts, but not those that the browser itself runs.
        result = Axe().run(page, options={"runOnly": rules})
        assert result.violations_count == 0, f"{name}: {result.generate_report()}"


def test_a_phone_scrolls_in_one_direction(visit: Visit, address: str, kinds: list[str]) -> None:
    visit.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for name in kinds:
        page = visit.open(address + name)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], name


def test_every_link_can_be_reached_by_keyboard(visit: Visit, address: str) -> None:
    page = visit.open(f"{address}report/index.html")
    links = page.locator("a:not([tabindex='-1'])").count()
    reached = set()
    for _ in range(links + 20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.outerHTML"))
    assert sum(element.startswith("<a ") for element in reached) == links


def test_the_report_opens_from_a_file(chromium: Browser, site: Path, kinds: list[str]) -> None:
    context = chromium.new_context(offline=True)
    visit = Visit(context.new_page(), site.as_uri())
    for name in kinds:
        page = visit.open((site / name).as_uri())
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == "rgb(255, 255, 255)", "the style sheet was not loaded"
    assert visit.faults == []
    context.close()


def test_a_point_leads_to_its_cell_and_the_command_that_repeats_it(
    visit: Visit, address: str, kinds: list[str]
) -> None:
    page = visit.open(address + next(name for name in kinds if "/verdict/" in name))
    page.locator(".drawing svg a").first.click()
    page.wait_for_load_state()
    assert "/cell/" in page.url
    assert page.locator(":target code").inner_text().startswith("asv run v")


def test_choosing_a_release_and_a_model_leads_to_its_numbers_and_back(
    visit: Visit, address: str, site: Path
) -> None:
    """As a reader does: choose, read the ratio, open its cell, download the CSV, go back."""
    page = visit.open(f"{address}report/index.html")
    page.get_by_role("navigation", name="Site").get_by_role("link", name="Does it pay?").click()
    page.get_by_role("navigation", name="Release").get_by_role(
        "link", name="v2.9", exact=True
    ).click()
    page.get_by_role("navigation", name="Batch size").get_by_role(
        "link", name="1", exact=True
    ).click()
    chosen = page.url
    table = page.get_by_role("table").first
    place = table.get_by_role("columnheader").all_inner_texts().index("default")
    # The model's name is the heading of the line, which is not a cell of the table.
    line = table.get_by_role("row").filter(
        has=page.get_by_role("rowheader", name="resnet18", exact=True)
    )
    field = line.get_by_role("cell").nth(place - 1)
    shown = field.inner_text()

    launches, sequential = _recorded(chosen, "2.9.1", Cell("resnet18", 1, "default"))
    recorded = statistics.measured_ratio(launches, sequential)
    assert shown.startswith(f"{recorded.value:.2f} [{recorded.low:.2f}, {recorded.high:.2f}]")

    field.get_by_role("link").click()
    assert page.locator("h1").inner_text() == "resnet18, batch 1, default"
    assert f"{recorded.value:.2f}" in page.locator("main").inner_text()
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    with started.value.path().open(newline="") as stream:
        lines = [line for line in csv.DictReader(stream) if line["release"] == "2.9.1"]
    counted = [line for line in lines if not line["set_aside"]]
    pairs = [
        [tuple(map(float, pair.split(":"))) for pair in line["pairs_s"].split()] for line in counted
    ]
    assert pairs == [[tuple(pair) for pair in launch.pairs_s] for launch in launches]

    page.go_back()
    assert page.url == chosen
    assert visit.faults == []


def _recorded(page: str, release: str, cell: Cell) -> tuple[list[Launch], bool]:
    """The launches of the cell's newest record in results/ by the machine of the page, and whether
    their number was decided while measuring.
    """
    [measurement] = [
        record.measurement
        for record in records.read(ROOT / "results").records
        if f"/{record.machine}/" in page
        and (record.release, record.measurement.cell) == (release, cell)
    ]
    return statistics.counted(measurement.launches), measurement.sequential


def test_another_reader_of_asvs_data_reads_it(
    chromium: Browser, site: Path, tmp_path: Path
) -> None:
    """asv-tachyon draws its own pages from the JSON that ASV publishes."""
    copy = tmp_path / "html"
    shutil.copytree(site, copy)
    program = Path(sys.executable).with_name("asv-tachyon")
    subprocess.run([program, "install", copy], check=True, timeout=60)
    with served(tmp_path) as address:
        context = chromium.new_context(viewport=DESKTOP)
        page = context.new_page()
        page.goto(f"{address}html/")
        page.get_by_text("track_latency").first.wait_for()
        names = {
            name.rpartition(".")[2]
            for name in json.loads((copy / "index.json").read_text())["benchmarks"]
        }
        assert "track_cold_compile" in names
        context.close()
