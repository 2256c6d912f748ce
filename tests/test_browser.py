"""The published site in a real Chromium without a network: ASV's pages and the report.

Each view is drawn for each machine. tests/test_site.py checks the documents that the views draw.
"""

from __future__ import annotations

import csv
import functools
import gzip
import itertools
import json
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from torchcompile_suite import targets, workloads
from torchcompile_suite.analysis import summaries, summary
from torchcompile_suite.analysis.payoff import BreakEven, State
from torchcompile_suite.analysis.statistics import Interval, formatted
from torchcompile_suite.asv import export, repository
from torchcompile_suite.asv.staging import is_published
from torchcompile_suite.cell import Cell
from torchcompile_suite.compiled import Compiled
from torchcompile_suite.measurement import OK, Outcome, Status
from torchcompile_suite.presentation import answers
from torchcompile_suite.presentation.wording import duration, ratio
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import records
from torchcompile_suite.site import build, packs, render
from torchcompile_suite.trial import view
from torchcompile_suite.trial.outline import Outline
from torchcompile_suite.trial.plan import Trial
from torchcompile_suite.trial.run import TrialResult

from . import divided, examples
from .conftest import ROOT
from .shards import Report, rows
from .site import DESKTOP, Visit, served, visited

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ASV_PAGES = ["", "#/summarylist", "#/regressions", "#inference.Inference.track_latency"]
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PHONE = {"width": 390, "height": 844}
# Guards against a hanging test; generous, because the machine may be busy.
PATIENCE_MS = 120_000
# Limits of what a reader has to load.
MOST_FIRST_BYTES = 80_000
MOST_VIEW_BYTES = 1_000_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that `asv publish` makes from the committed results, in a subfolder of a host."""
    clone = tmp_path_factory.mktemp("publish")
    for name in ("asv.conf.json", "benchmarks", "src", "results", "docs"):
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


@pytest.fixture(scope="module")
def report(site: Path) -> Report:
    return Report(site / "report")


@pytest.fixture
def visit(chromium: Browser, address: str) -> Iterator[Visit]:
    with visited(chromium, address) as visit:
        yield visit


@pytest.fixture(params=["chromium", pytest.param("firefox", marks=pytest.mark.nightly)])
def browser(request: pytest.FixtureRequest) -> Any:
    """Each browser, for what a reader does."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def reader(browser: Browser, address: str) -> Iterator[Visit]:
    """A visit in each of them. The driver of Firefox has no downloads and no other color scheme."""
    with visited(browser, address) as visit:
        yield visit


# What the committed site has to be


# Differences that do not count: the time of publication, and the last digits (another processor
# rounds them).
_MADE_AT = re.compile(r'"(timestamp|generated)": ?\S+|<updated>[^<]*</updated>')
_DECIMALS = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")


def differences(one: Path, other: Path) -> list[str]:
    """Files that are in one folder only, or whose contents differ.

    The shards of the report are compared by their documents: a name tells the last digit, too.
    """
    names = [
        {
            str(file.relative_to(folder))
            for file in folder.rglob("*")
            if file.is_file() and file.parent.name != packs.FOLDER
        }
        for folder in (one, other)
    ]
    found = sorted(names[0] ^ names[1]) + sorted(
        name for name in names[0] & names[1] if not same(one / name, other / name)
    )
    reports = [folder / "report" for folder in (one, other)]
    if all((folder / packs.FOLDER).is_dir() for folder in reports):
        documents = [Report(folder).everything() for folder in reports]
        found += sorted(documents[0].keys() ^ documents[1].keys())
        found += [
            key
            for key in sorted(documents[0].keys() & documents[1].keys())
            if not alike(documents[0][key], documents[1][key])
        ]
    return found


def alike(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal up to the last digits of their numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-7)
    return bool(one == other)


def same(one: Path, other: Path) -> bool:
    contents = [file.read_bytes() for file in (one, other)]
    if contents[0] == contents[1]:
        return True
    if one.suffix not in {".html", ".json", ".xml"}:
        return False
    if one.name == "regressions.json":
        # Their order is that in which the processes of ASV finished.
        regressions = [json.loads(content)["regressions"] for content in contents]
        return sorted(map(str, regressions[0])) == sorted(map(str, regressions[1]))
    if one.name == "regressions.xml":
        entries = [_MADE_AT.sub("", content.decode()).split("<entry>") for content in contents]
        feeds = [sorted(each.split("</entry>")[0] for each in feed) for feed in entries]
        return feeds[0] == feeds[1]
    texts = [_MADE_AT.sub("", content.decode()) for content in contents]
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
    assert alike({"a": [1.0, "x"]}, {"a": [1.0 + 1e-9, "x"]})
    assert not alike({"a": [1.0, "x"]}, {"a": [1.001, "x"]})
    assert not alike({"a": [1.0, "x"]}, {"a": [1.0, "y"]})


def test_the_site_is_small(site: Path, report: Report) -> None:
    """A page of each cell would be thousands of files. A machine has some packs and graphs."""
    files = [file for file in site.rglob("*") if file.is_file()]
    assert len(files) <= 60 * len(report.machines)
    assert sum(file.stat().st_size for file in files) <= 8_000_000


# ASV's own pages


def _with_results() -> set[str]:
    """The benchmarks of ASV's pages that have values of their current version."""
    results = ROOT / "results"
    benchmarks = export.recorded_benchmarks(results)
    machines = results.glob("*/machine.json")
    commits = repository.in_ledger()
    contents = [
        json.loads(file.content)
        for file in export.derive(results, machines, commits, ROOT / "benchmarks", [])
    ]
    return {
        name
        for content in contents
        for name, columns in content["results"].items()
        if is_published(name)
        and columns[content["result_columns"].index("version")] == benchmarks[name]["version"]
        and any(value == value and value is not None for value in columns[0] or ())
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
        expect(rows.first).to_be_visible(timeout=PATIENCE_MS)
    elif "regressions" in fragment:
        table = page.locator("#regressions-body table").first
        expect(table).to_be_visible(timeout=PATIENCE_MS)
    elif "track_latency" in fragment:
        canvas = page.locator("#main-graph canvas").first
        expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_load_state("networkidle")
    assert visit.faults == []


# The report


def drawn(page: Page) -> Page:
    """The page, when its view and every picture of it are drawn."""
    page.wait_for_selector("html[data-drawn]", timeout=PATIENCE_MS)
    page.wait_for_selector("#view[aria-busy=false]", timeout=PATIENCE_MS)
    # Playwright's wait_for_function evaluates text, which the policy of the pages forbids.
    page.wait_for_selector("figure:not([data-drawn])", state="detached", timeout=PATIENCE_MS)
    return page


def redrawn(page: Page, act: Callable[[], object]) -> Page:
    """The page after an action that draws its view again."""
    before = page.evaluate("document.documentElement.dataset.drawn")
    act()
    page.wait_for_selector(f"html[data-drawn]:not([data-drawn='{before}'])", timeout=PATIENCE_MS)
    return drawn(page)


def views(report: Report) -> list[str]:
    """An address of each view for each machine, and the pages without a view."""
    found = [kind.file for kind in (render.TABLES, render.RELEASES)]
    # Of each kind of prerendered pages two, which need not be there.
    for kind in ("stories", "story-*", "release-*"):
        found += sorted(file.name for file in report.folder.glob(f"{kind}.html"))[:2]
    for machine in report.machines.values():
        points = machine.entry["points"]
        # A machine may have a handful of cells.
        names = machine.lines()
        cell = min((name for name in names if name.startswith("resnet18,")), default=min(names))
        model = cell.partition(",")[0]
        found += [f"{kind.file}#machine={machine.name}" for kind in render.KINDS]
        found += [f"index.html#machine={machine.name}&at={points[0]}&batch=all"]
        found += [f"cell.html#machine={machine.name}&cell={cell}"]
        found += [f"cell.html#machine={machine.name}&model={model}"]
        found += [f"answers.html#machine={machine.name}&ask={name}" for name in answers.names()]
        found += [f"compare.html#machine={machine.name}&before={points[0]}&after={points[-1]}"]
    return found


@pytest.fixture(scope="module")
def kinds(report: Report) -> list[str]:
    """Every view of one machine, and the pages about none."""
    first = next(iter(report.machines))
    return [name for name in views(report) if first in name or "#" not in name]


@pytest.fixture(scope="module")
def pages(kinds: list[str]) -> list[str]:
    """One view of each page and set of choices, one release and one story: they look alike."""
    return [*{re.sub(r"=[^&]*|^(release|story)-.*", r"\1", name): name for name in kinds}.values()]


def opened(visit: Visit, url: str) -> Page:
    # Another fragment alone would not load the page again.
    visit.page.goto("about:blank")
    visit.page.goto(url)
    return drawn(visit.page) if visit.page.locator("#view").count() else visit.page


@pytest.mark.parametrize(
    "which", ["of one machine", pytest.param("all", marks=pytest.mark.nightly)]
)
def test_every_view_is_drawn_within_a_second_and_asks_no_other_host(
    visit: Visit, address: str, report: Report, kinds: list[str], which: str
) -> None:
    """With an answer, and with a table for each of its pictures."""
    names = views(report) if which == "all" else kinds
    pictures, slow = 0, []

    def quick(name: str) -> bool:
        started = time.perf_counter()
        opened(visit, f"{address}report/{name}")
        return time.perf_counter() - started <= 1

    page = visit.page
    for name in names:
        if not quick(name) and "#" in name:
            slow.append(name)
        assert page.locator("h1").is_visible()
        for figure in page.locator("figure").all():
            pictures += 1
            table = figure.locator("xpath=following-sibling::div//table")
            assert table.count() >= 1, f"{name}: {figure.inner_text()}"
            assert figure.locator("svg.picture, canvas").count() >= 1
        if "#" not in name:
            continue
        assert page.locator("#view .answer").count() >= 1, name
        if page.get_by_text("Only one release was measured").count() == 0:
            assert page.locator("#view table").count() >= 1, name
        assert page.get_by_role("alert").count() == 0, name
    assert visit.faults == []
    assert pictures > 8
    # The machine of a test may be busy: the best of five.
    assert [name for name in slow if not any(quick(name) for _ in range(4))] == []


LIGHT: dict[str, object] = {"type": "tag", "values": WCAG}
# Nothing but the colors depends on the scheme.
DARK: dict[str, object] = {"type": "rule", "values": ["color-contrast"]}
# More rows of a table than that look like those before, and so does a table with the same columns.
# Every night all are checked.
SHORTEN = """(() => {
    document.querySelectorAll('tbody tr:nth-child(n + 8)').forEach((row) => row.remove());
    const seen = new Set();
    for (const table of document.querySelectorAll('main table')) {
        const columns = table.tHead ? table.tHead.innerText : '';
        if (seen.has(columns)) table.remove();
        seen.add(columns);
    }
})()"""


def violations(page: Page, rules: dict[str, object]) -> str:
    """What axe finds against the rules; empty if it finds nothing."""
    result = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})
    return str(result.generate_report()) if result.violations_count else ""


@pytest.mark.parametrize(
    ("which", "dark_step"), [("pages", 4), pytest.param("kinds", 1, marks=pytest.mark.nightly)]
)
def test_pages_are_accessible(
    visit: Visit, address: str, request: pytest.FixtureRequest, which: str, dark_step: int
) -> None:
    for number, name in enumerate(request.getfixturevalue(which)):
        visit.page.emulate_media(color_scheme="light")
        page = opened(visit, f"{address}report/{name}")
        if which == "pages":
            page.evaluate(SHORTEN)
        assert violations(page, LIGHT) == "", name
        if number % dark_step == 0:
            page.emulate_media(color_scheme="dark")
            assert violations(page, DARK) == "", name


def test_every_link_and_choice_can_be_reached_by_keyboard(visit: Visit, address: str) -> None:
    page = opened(visit, f"{address}report/index.html")
    wanted = page.locator(
        "a:not([tabindex='-1']):visible, select:visible, input:visible, button:visible"
    ).count()
    reached: set[int] = set()
    for _ in range(2 * wanted + 20):
        page.keyboard.press("Tab")
        at = page.evaluate(
            "[...document.querySelectorAll('a, select, input, button')]"
            ".indexOf(document.activeElement)"
        )
        if at in reached - {-1}:
            break  # it begins again
        reached.add(at)
    assert len(reached - {-1}) == wanted


def test_the_report_opens_from_a_file_on_a_phone(
    browser: Browser, site: Path, pages: list[str]
) -> None:
    with visited(browser, site.as_uri()) as visit:
        visit.page.set_viewport_size(PHONE)
        for name in pages:
            page = opened(visit, f"{(site / 'report').as_uri()}/{name}")
            colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert colour == "rgb(255, 255, 255)", "the style sheet was not loaded"
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= PHONE["width"], f"{name} scrolls in two directions"
        faults = [fault for fault in visit.faults if "about:blank" not in fault]
        assert faults == []


def test_without_scripts_the_newest_results_are_there(
    chromium: Browser, address: str, report: Report
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}report/index.html")
    machine = next(iter(report.machines.values()))
    overview = machine.document(f"overview/{machine.entry['points'][-1]}")
    text = page.locator("main").inner_text()
    assert overview["groups"][0]["headline"] in text
    assert page.locator("table").count() >= 1
    page.goto(f"{address}report/tables.html")
    text = page.locator("main").inner_text()
    assert all(one.entry["title"] in text for one in report.machines.values())
    context.close()


def test_paper_is_white(visit: Visit, address: str) -> None:
    visit.page.emulate_media(color_scheme="dark")
    page = opened(visit, f"{address}report/index.html")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    assert len(page.pdf()) > 10_000


def test_a_mark_above_a_history_leads_to_the_story_of_its_release(
    visit: Visit, address: str, report: Report
) -> None:
    machine = next(one for one in report.machines.values() if "2.9.1" in one.entry["points"])
    name = f"{address}report/cell.html#machine={machine.name}&model=resnet18"
    for width in (DESKTOP["width"], PHONE["width"]):
        visit.page.set_viewport_size({"width": width, "height": 800})
        page = opened(visit, name)
        title = "max-autotune lost resnet18's gain on a CPU in PyTorch 2.9"
        told = page.locator("#cells table", has=page.get_by_role("columnheader", name="story"))
        line = next(one for one in fields(told) if one["story"] == title)
        mark = page.locator(".marks").get_by_role("link", name=f"Story {line['mark']}: {title}")
        assert mark.inner_text() == line["mark"]
        box, plot = mark.bounding_box(), page.locator(".u-over").bounding_box()
        assert box is not None
        assert plot is not None
        points = machine.entry["points"]
        # uPlot's scale has 0.4 of a step before the first point, and as much after the last.
        share = (points.index("2.9.1") + 0.4) / (len(points) - 0.2)
        assert abs(box["x"] + box["width"] / 2 - plot["x"] - share * plot["width"]) < 3
        mark.click()
        expect(page.locator("h1")).to_have_text(title)
    assert visit.faults == []


def test_the_means_of_the_first_page_carry_marks_of_stories(
    visit: Visit, address: str, report: Report
) -> None:
    """Of those about its models; one about another program has no mark."""
    page = opened(visit, f"{address}report/index.html")
    told = page.locator("#since table", has=page.get_by_role("columnheader", name="story"))
    titles = [one["story"] for one in fields(told)]
    shown = set(page.locator("#pays tbody th").all_inner_texts())
    stories = report.manifest["stories"]
    assert titles == [
        title for title, _, _, models, only in stories if shown & set(models) and not only
    ]
    assert any(only for _, _, _, models, only in stories if shown & set(models))
    assert 0 < len(titles) < len(stories)
    mark = page.locator("#since .marks").first.get_by_role("link").first
    mark.click()
    assert page.locator("h1").inner_text() in titles
    assert visit.faults == []


def test_a_model_says_which_release_is_the_fastest(
    visit: Visit, address: str, report: Report
) -> None:
    machine = next(one for one in report.machines.values() if "2.9.1" in one.entry["points"])
    said = machine.lines()["resnet18, batch 1, default"]["fastest"]
    page = opened(visit, f"{address}report/cell.html#machine={machine.name}&model=resnet18")
    assert f"batch 1, default: {said}" in page.locator(".fastest li").all_inner_texts()
    page = opened(
        visit,
        f"{address}report/cell.html#machine={machine.name}&cell=resnet18, batch 1, default",
    )
    expect(page.get_by_text(said, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("index.html", "#pays table"),
        ("cell.html#model=resnet18", "#cells table:has-text('eager time')"),
        ("models.html", "#ratios table"),
    ],
)
def test_a_phone_shows_the_ratios_without_scrolling(
    visit: Visit, address: str, name: str, table: str
) -> None:
    visit.page.set_viewport_size(PHONE)
    page = opened(visit, f"{address}report/{name}")
    box = page.locator(table).first.locator("tbody tr").first.locator("td").first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= PHONE["width"]


def test_the_first_page_leads_on_with_and_without_a_script(
    chromium: Browser, address: str, report: Report
) -> None:
    newest = next(iter(report.machines.values())).entry["points"][-1]
    of_release = f"release-{'.'.join(newest.split('.')[:2])}.html"
    for script in (True, False):
        context = chromium.new_context(java_script_enabled=script)
        page = context.new_page()
        page.goto(f"{address}report/index.html")
        if script:
            drawn(page)
        start = page.locator("#view #start")
        assert "torchcompile-suite try" in start.inner_text()
        links = [one.get_attribute("href") for one in start.get_by_role("link").all()]
        assert {of_release, "stories.html"} <= set(links)
        context.close()


def test_what_is_no_model_is_folded_under_its_question(
    visit: Visit, address: str, report: Report
) -> None:
    machine = next(iter(report.machines.values()))
    page = opened(visit, f"{address}report/index.html#machine={machine.name}")
    shown = page.locator("#pays table").first.locator("tbody th").all_inner_texts()
    assert "resnet18" in shown
    assert not [name for name in shown if workloads.made_for(name)]
    page.get_by_text("Small programs").click()
    folded = page.locator("details")
    overview = machine.document(f"overview/{machine.entry['points'][-1]}")
    first = {group["question"]: group["of_models"] for group in reversed(overview["groups"])}
    small = {question for question, of_models in first.items() if not of_models}
    assert small & set(workloads.MADE_FOR.values())
    assert {line["question"] for line in fields(folded.locator("table"))} == small
    redrawn(page, folded.get_by_role("link").first.click)
    shown = page.locator("#pays table").first.locator("tbody th").all_inner_texts()
    assert shown
    # The label says how a cell differs: "relevance_information (training)".
    assert all(workloads.made_for(name.partition(" (")[0]) for name in shown)


# The numbers


def fields(table: Locator) -> list[dict[str, str]]:
    """The lines of a table, each by the headings of its columns."""
    heads = [one.strip() for one in table.locator("thead th").all_inner_texts()]
    script = "(body) => [...body.rows].map((row) => [...row.cells].map((cell) => cell.innerText))"
    lines = table.locator("tbody").evaluate(script)
    return [dict(zip(heads, line, strict=True)) for line in lines]


def test_the_numbers_on_screen_are_those_of_the_report(
    visit: Visit, address: str, report: Report
) -> None:
    """Every cell of the newest release of each machine; the same functions write both."""
    recorded = summaries.read(ROOT / "results").records
    for machine in report.machines.values():
        point = machine.entry["points"][-1]
        mine = {
            str(row.cell): row
            for row in summary.rows(recorded)
            if (row.machine, row.release) == (machine.name, point)
        }
        seen = 0
        for question in {row["question"] for row in machine.figures(point) if row["verdict"]}:
            where = f"#machine={machine.name}&question={question}&batch=all"
            url = f"{address}report/models.html{where}"
            # Another fragment draws the view again without loading the page.
            page = (
                redrawn(visit.page, partial(visit.page.goto, url)) if seen else opened(visit, url)
            )
            for line in fields(page.locator("#ratios table").first):
                row = mine[line["cell"]]
                if row.ratio is None:
                    continue
                assert line["ratio"].startswith(ratio(row.ratio)), line
                assert row.eager_s is not None
                assert row.latency_s is not None
                times = {name for name in line if name.endswith(" time")}
                (baseline,) = times - {"mode time"}
                assert line[baseline] == duration(row.eager_s.value)
                assert line["mode time"] == duration(row.latency_s.value)
                seen += 1
        assert seen >= 5


def asked(*arguments: str) -> Any:
    """What the command prints as JSON."""
    command = [sys.executable, "-m", "torchcompile_suite", *arguments, "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=300)
    return json.loads(done.stdout)


def test_a_comparison_on_screen_is_that_of_the_command(
    visit: Visit, address: str, report: Report
) -> None:
    machine = next(one for one in report.machines.values() if len(one.entry["points"]) > 1)
    before, after = machine.entry["points"][0], machine.entry["points"][-1]
    wanted = asked("report", f"v{before}", f"v{after}", "--machine", machine.name)
    page = opened(
        visit,
        f"{address}report/compare.html#machine={machine.name}&before={before}&after={after}",
    )
    means = {line["figure"]: line for line in fields(page.locator("#means table"))}
    assert means.keys() == wanted["means"].keys()
    for name, (value, low, high) in wanted["means"].items():
        text = str(Interval(value, low, high))
        assert means[name]["geometric mean of after/before"] == text
    while page.locator("#all .more:visible").count():
        page.locator("#all .more").click()
    shown = {(line["cell"], line["figure"]): line for line in fields(page.locator("#all table"))}
    effects = {
        (str(Cell(**change["cell"])), name): effect
        for change in wanted["changes"]
        for name, effect in change["effects"].items()
    }
    assert shown.keys() == effects.keys()
    for key, effect in effects.items():
        value, low, high = effect["factor"]
        assert shown[key]["after/before"] == str(Interval(value, low, high))
        assert shown[key]["difference"] == effect["verdict"]


def test_an_answer_on_screen_is_that_of_the_command(
    visit: Visit, address: str, report: Report
) -> None:
    """From the first page to each question and its answer, in place, and back by the address."""
    machine = next(one for one in report.machines.values() if len(one.entry["points"]) > 1)
    point = machine.entry["points"][-1]
    wanted = {
        one["question"]: one
        for one in asked("answers", "--release", f"v{point}", "--machine", machine.name)
    }
    page = opened(visit, f"{address}report/index.html#machine={machine.name}")
    links = page.locator("#asked").get_by_role("link")
    assert links.all_inner_texts() == [one["title"] for one in wanted.values()]
    page.locator("#asked").get_by_role("link", name=wanted["inference"]["title"]).click()
    page.wait_for_url("**/answers.html#**")
    drawn(page)
    for name in (one.name for one in answers.QUESTIONS if not one.of_targets):
        chosen = page.get_by_label("Question", exact=True)
        if chosen.input_value() != name:
            redrawn(page, partial(chosen.select_option, name))
        assert page.locator("h1").inner_text().startswith(wanted[name]["title"])
        assert page.locator(".answer").first.inner_text() == wanted[name]["sentence"]
        assert f"ask={name}" in page.url
        tables = page.locator("#cells table")
        assert tables.count() == bool(wanted[name]["rows"])
        if tables.count():
            while page.locator("#cells .more:visible").count():
                page.locator("#cells .more").click()
            script = "(body) => [...body.rows].map((row) => [...row.cells].map((c) => c.innerText))"
            shown = tables.locator("tbody").evaluate(script)
            trimmed = [[text.strip() for text in line] for line in wanted[name]["rows"]]
            assert sorted([text.strip() for text in line] for line in shown) == sorted(trimmed)
    redrawn(page, lambda: page.get_by_label("Question", exact=True).select_option(""))
    lines = fields(page.locator("#questions table"))
    assert [line["question"] for line in lines] == [one["title"] for one in wanted.values()]
    assert visit.faults == []


# Several machines of one class, which the committed results need not have


def test_each_cell_of_a_fleet_names_the_machine_that_measured_it(
    chromium: Browser, tmp_path: Path
) -> None:
    """The class is chosen like a machine, and all its models are in one history."""
    divided.write(tmp_path / "results")
    place = tmp_path / "host"
    assert build.build(tmp_path / "results", place / "report") == []
    (place / "swallow.ico").touch()  # one of ASV's own
    with served(place) as address, visited(chromium, address) as visit:
        page = opened(visit, f"{address}report/index.html")
        assert page.get_by_label("Machine").input_value() == divided.CLASS
        titles = page.get_by_label("Machine").locator("option").all_inner_texts()
        assert titles[0] == "Box, 2 cores, 8 GB, 2 machines"
        page = opened(visit, f"{address}report/models.html#machine={divided.CLASS}&batch=all")
        lines = fields(page.locator("#ratios table").first)
        assert {(line["cell"].partition(",")[0], line["machine"]) for line in lines} == set(
            divided.HOMES.items()
        )
        for model, machine in divided.HOMES.items():
            page.locator("#ratios table").get_by_role("link", name=f"{model},").first.click()
            said = drawn(page).locator("#view").inner_text()
            assert f"All of this cell was measured on {machine}" in said
            page.go_back()
            drawn(page)
        redrawn(page, lambda: page.get_by_label("Machine").select_option("box.two"))
        heads = page.locator("#ratios table th").all_inner_texts()
        assert "machine" not in heads, "one machine needs no column of machines"
        assert visit.faults == []


# Generated code, which the committed results need not have


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with the code of three releases for a target; one release has no code of a cell."""
    results = tmp_path_factory.mktemp("results")
    folder = results / "box"
    folder.mkdir()
    (folder / "machine.json").write_text('{"machine": "box"}')
    commits = ledger.commit_of()
    for number, release in enumerate(("2.4.1", "2.9.1", "2.15.0")):
        refused = Outcome(Status.UNSUPPORTED, "<b>asks</b> the device") if number == 1 else OK
        graphs = examples.code(40, 30 - number, cuda_graphs=1, outside_launches=number)
        made = [
            examples.generated(release=release, forward=examples.code(1000 + number % 2)),
            examples.generated("vit16x6x384", release=release, outcome=refused),
            examples.generated("gpt_decode", "reduce-overhead", graphs, release=release),
        ]
        file = records.path(folder, commits[release], "env-py3.11")
        for one in (*made, examples.at(release, examples.measurement())):
            records.append(file, one)
    place = tmp_path_factory.mktemp("code")
    assert build.build(results, place / "report") == []
    (place / "swallow.ico").touch()  # one of ASV's own
    return place


def test_generated_code_shows_exact_counts_with_their_changes(
    chromium: Browser, code: Path
) -> None:
    device = targets.get("cuda:sm90").device
    with served(code) as host, visited(chromium, host) as visit:
        page = opened(visit, f"{host}report/generated.html#target=cuda:sm90")
        assert page.locator("h1").inner_text() == f"What is generated for {device}?"
        assert page.get_by_label("Machine", exact=True).count() == 0
        assert page.get_by_label("Count", exact=True).input_value() == "launches"
        lines = {line["cell"]: line for line in fields(page.locator("#history table"))}
        assert lines["resnet18, batch 1"] == {
            **{"cell": "resnet18, batch 1", "v2.4": "1,002"},
            **{"v2.9": "1,003 (more, was 1,002)", "v2.15": "1,002 (fewer, was 1,003)"},
        }
        assert lines["vit16x6x384, batch 1"]["v2.9"] == "unsupported"
        picture = page.locator("#history svg.picture").last
        assert picture.locator("text.count").all_text_contents() == ["1,002", "1,003", "1,002", "5"]
        titles = picture.locator("title").all_text_contents()
        assert "resnet18, batch 1, v2.9: 1,003: more, 1,002 with v2.4" in titles
        assert "vit16x6x384, batch 1, v2.9: unsupported: <b>asks</b> the device" in titles
        redrawn(
            page, lambda: page.get_by_label("Mode", exact=True).select_option("reduce-overhead")
        )
        assert page.get_by_label("Count", exact=True).input_value() == "with CUDA graphs"
        redrawn(page, lambda: page.get_by_label("Count", exact=True).select_option("of libraries"))
        then = page.url
        (line,) = fields(page.locator("#history table"))
        assert [line[f"v2.{minor}"][:2] for minor in (4, 9, 15)] == ["30", "29", "28"]
        (line,) = fields(opened(visit, then).locator("#history table"))
        assert line["v2.15"] == "28 (fewer, was 29)"
        page.set_viewport_size(PHONE)
        drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        # The newest release is always in view.
        script = "(one) => [one.scrollWidth, one.clientWidth]"
        needed, there = page.locator("#history .drawing").evaluate(script)
        assert needed <= there
        expect(page.locator("#history svg.picture").last).to_contain_text("v2.15")
        assert violations(page, LIGHT) == ""
        assert visit.faults == []


def test_a_picture_of_long_counts_has_the_newest_releases(chromium: Browser, code: Path) -> None:
    with served(code) as host, visited(chromium, host) as visit:
        visit.page.set_viewport_size({"width": 120, "height": 800})
        page = opened(visit, f"{host}report/generated.html#target=cuda:sm90")
        assert page.get_by_text("From v2.9 on; the table has the others.").is_visible()
        labels = page.locator("#history svg.picture text.tick").all_text_contents()
        assert labels == ["v2.9", "v2.15"]


def test_a_site_without_times_shows_its_code_and_what_was_left_out(
    chromium: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "results" / "box"
    file = records.path(folder, ledger.commit_of()["2.15.0"], "env-py3.11")
    records.append(file, examples.generated(release="2.15.0"))
    (folder / "machine.json").write_text('{"machine": "box"}')
    (folder / "torn.records.jsonl").write_text("no measurement")
    assert len(build.build(tmp_path / "results", tmp_path / "html" / "report")) == 1
    (tmp_path / "html" / "swallow.ico").touch()
    with served(tmp_path / "html") as host, visited(chromium, host) as visit:
        page = opened(visit, f"{host}report/generated.html")
        assert fields(page.locator("#history table"))[0]["cell"] == "resnet18, batch 1"
        page = opened(visit, f"{host}report/trust.html")
        assert "torn" in fields(page.locator("#left-out table"))[0]["where"]
        page = opened(visit, f"{host}report/index.html")
        assert "Nothing was measured yet" in page.locator("#view").inner_text()
        assert visit.faults == []


# What the committed results need not have


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a report of two machines and three releases."""
    results = tmp_path_factory.mktemp("results")
    commits = ledger.commit_of()
    start = Cell("resnet18", 1, "default", start="uncached")
    slower = examples.measurement("slow", scale=2)
    compiled = Compiled(phases_s={"inductor": 5.0, "another": 1.0, "dynamo": 2.0})
    slower.launches[0] = msgspec.structs.replace(slower.launches[0], compiled=compiled)
    for machine, releases in {"one": ("2.8.0", "2.9.1", "2.15.0"), "two": ("2.9.1",)}.items():
        (results / machine).mkdir()
        (results / machine / "machine.json").write_text(json.dumps({"machine": machine}))
        for release in releases:
            made = [
                examples.calibrated(examples.measurement(mode="max-autotune", scale=0.9), 1.5e-4),
                examples.calibrated(examples.measurement(), 1e-4),
                examples.measurement("convnext", mode="max-autotune", scale=0.5),
                examples.measurement("attention_sdpa_128"),
                slower,
                msgspec.structs.replace(
                    examples.calibrated(examples.measurement(), 1e-4, 500), cell=start
                ),
            ]
            file = records.path(results / machine, commits[release], "env-py3.11")
            for one in made:
                records.append(file, examples.at(release, one))
    place = tmp_path_factory.mktemp("own")
    assert build.build(results, place / "report") == []
    (place / "swallow.ico").touch()  # one of ASV's own
    with served(place) as host:
        yield host


@pytest.fixture
def visitor(chromium: Browser, own: str) -> Iterator[Visit]:
    with visited(chromium, own) as visit:
        yield visit
        assert visit.faults == []


def test_a_slowed_cell_is_marked_in_every_table_of_its_times(visitor: Visit, own: str) -> None:
    for name in (
        "index.html",
        "models.html",
        "cost.html",
        "cell.html#model=resnet18",
        "cell.html#cell=resnet18, batch 1, max-autotune",
    ):
        page = opened(visitor, f"{own}report/{name}")
        mark = page.locator("abbr", has_text="slowed").first
        assert "1.50 times as slow" in (mark.get_attribute("title") or ""), name
        assert violations(page, LIGHT) == "", name
    page = opened(visitor, f"{own}report/cell.html#cell=resnet18, batch 1, default")
    assert page.locator("abbr").count() == 0


def test_all_models_open_with_inference(visitor: Visit, own: str) -> None:
    page = opened(visitor, f"{own}report/models.html")
    chosen = page.get_by_label("Question", exact=True)
    assert chosen.locator("option").all_inner_texts() == ["inference", "attention", "cold starts"]
    assert chosen.input_value() == "inference"


def test_a_mode_has_one_colour_on_all_pages(visitor: Visit, own: str) -> None:
    """Also where the fastest cell, which is drawn first, is of another mode."""
    for name in ("index.html", "models.html"):
        page = opened(visitor, f"{own}report/{name}")
        items = page.locator("#view .legend").first.locator("li")
        shown = {
            item.inner_text().strip(): item.locator("svg > *").get_attribute("class")
            for item in items.all()
        }
        assert shown == {"default": "s0 fill", "max-autotune": "s2 fill"}, name


def test_means_of_modes_with_different_cells_have_their_numbers(visitor: Visit, own: str) -> None:
    page = opened(visitor, f"{own}report/index.html#machine=one")
    table = page.locator("#pays table", has_text="The modes: geometric means")
    assert "Means of different cells do not compare" in table.locator("caption").inner_text()
    numbers = {line["mode"]: line["cells"] for line in fields(table)}
    assert numbers == {"default": "2", "max-autotune": "2"}


def test_a_cell_that_never_pays_says_so_once_and_names_phases_in_time_order(
    visitor: Visit, own: str
) -> None:
    page = opened(visitor, f"{own}report/cell.html#machine=one&cell=slow, batch 1, default")
    assert "Compiling never pays: compiled calls are slower." in page.locator("#pays").inner_text()
    phases = page.locator("#compiler table", has_text="by phase")
    assert [line["phase"] for line in fields(phases)] == ["Dynamo", "Inductor", "another"]


def test_one_release_has_no_history(visitor: Visit, own: str) -> None:
    page = opened(visitor, f"{own}report/index.html#machine=two")
    said = "Only one release was measured here, so there is no history."
    assert said in page.locator("#since").inner_text()


def test_a_tag_names_a_release_and_what_is_not_there_is_said(visitor: Visit, own: str) -> None:
    page = opened(visitor, f"{own}report/index.html#machine=one&at=v2.9")
    assert page.get_by_label("Release", exact=True).input_value() == "2.9.1"
    assert page.get_by_role("note").count() == 0
    page = opened(visitor, f"{own}report/compare.html#machine=one&before=v2.8&after=v2.9")
    assert page.locator("h1").inner_text() == "What changed from v2.8 to v2.9?"
    assert page.get_by_role("note").count() == 0
    page = opened(visitor, f"{own}report/index.html#machine=two&at=2.15.0&question=<b>x")
    said = page.get_by_role("note").inner_text()
    assert said.startswith("Not found here: at v2.15, question <b>x.")
    page = opened(visitor, f"{own}report/index.html#machine=one&release=2.9.1&at=2.9.1")
    assert page.get_by_role("note").inner_text().startswith("Not found here: release v2.9.")


def test_pages_without_a_view_keep_the_machine(visitor: Visit, own: str) -> None:
    page = opened(visitor, f"{own}report/index.html#machine=two")
    page.get_by_role("link", name="Releases", exact=True).click()
    page.wait_for_url("**/releases.html#machine=two**")
    page.get_by_role("link", name="Questions", exact=True).click()
    page.wait_for_url("**/answers.html#**")
    assert drawn(page).get_by_label("Machine", exact=True).input_value() == "two"


def test_a_cell_says_since_which_release_it_pays(visitor: Visit, own: str) -> None:
    page = opened(
        visitor, f"{own}report/cell.html#machine=one&cell=convnext, batch 1, max-autotune"
    )
    assert page.get_by_text("Compiling surely pays in all 3 releases.").is_visible()


def test_a_long_time_is_in_seconds(visitor: Visit, own: str) -> None:
    page = opened(visitor, f"{own}report/models.html#question={quote('cold starts')}&at=2.15.0")
    (line,) = fields(page.locator("#ratios table").first)
    assert (line["eager time"], line["mode time"]) == ("20 s", "15 s")
    said = page.evaluate("[0.9996, 0.0123456, 0.00001234].map((one) => Page.Words.duration(one))")
    assert said == [duration(one) for one in (0.9996, 0.0123456, 0.00001234)]
    assert said == ["1 s", "12.3 ms", "12.3 us"]


def test_the_words_of_a_number_are_pythons(visit: Visit, address: str) -> None:
    page = opened(visit, f"{address}report/index.html")
    numbers = [mantissa * 10.0**size for size in range(-7, 8) for mantissa in (1, 1.2344, 9.996)]
    found = page.evaluate("(all) => all.map((one) => Page.Words.general(one))", numbers)
    assert found == [formatted(number, ".3g") for number in numbers]
    ranges = [(0.4, 1.3), (1.4, 1.6), (12.5, 125.0), (124.9, 125.1), (12345.6, 7e7), (950, 1050)]
    rows = [
        {"break_even_state": "calls", "break_even_least": least, "break_even_most": most}
        for least, most in ranges
    ]
    said = page.evaluate("(all) => all.map((one) => Page.Words.paysAfter(one))", rows)
    assert said == [str(BreakEven(State.CALLS, least=few, most=many)) for few, many in ranges]


# What a reader does


def test_a_point_leads_to_its_cell_and_the_command_that_repeats_it(
    reader: Visit, address: str
) -> None:
    page = opened(reader, f"{address}report/index.html")
    page.locator(".picture a .target").first.click()
    drawn(page)
    assert "/cell.html#" in page.url
    assert page.locator("#again code").inner_text().startswith("asv run v")
    assert reader.faults == []


def test_choosing_in_place_keeps_the_choices_in_the_address(
    reader: Visit, address: str, report: Report
) -> None:
    machine = next(one for one in report.machines.values() if len(one.entry["points"]) > 3)
    page = opened(reader, f"{address}report/index.html")
    redrawn(page, lambda: page.get_by_label("Machine", exact=True).select_option(machine.name))
    chosen = machine.entry["points"][-3]
    redrawn(page, lambda: page.get_by_label("Release", exact=True).select_option(chosen))
    redrawn(page, lambda: page.get_by_label("Batch size", exact=True).select_option("1"))
    address_then = page.url
    assert f"machine={machine.name}" in address_then
    assert f"at={chosen}" in address_then
    headline = page.locator(".answer").first.inner_text()
    overview = machine.document(f"overview/{chosen}")
    (group,) = [
        one for one in overview["groups"] if (one["question"], one["batch"]) == ("inference", "1")
    ]
    assert headline == group["headline"]
    # The navigation keeps the choices, and the address alone brings them back.
    for room, name in (("Site", "Questions"), ("Questions", "Cost")):
        page.get_by_role("navigation", name=room).get_by_role("link", name=name).click()
        drawn(page)
    assert page.get_by_label("Release", exact=True).input_value() == chosen
    assert opened(reader, address_then).locator(".answer").first.inner_text() == headline
    assert reader.faults == []


def test_choosing_a_model_leads_to_its_numbers_and_its_data(
    visit: Visit, address: str, report: Report
) -> None:
    """As a reader does: search, open the cell, choose a release, download the launches."""
    machine = next(one for one in report.machines.values() if "2.9.1" in one.entry["points"])
    page = opened(visit, f"{address}report/index.html#machine={machine.name}")
    page.get_by_label("Find a model", exact=True).fill("resnet18")
    page.get_by_label("Find a model", exact=True).press("Enter")
    page.wait_for_url("**/cell.html#**")
    drawn(page)
    page.get_by_role("link", name="resnet18, batch 1, default", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("resnet18, batch 1, default", timeout=PATIENCE_MS)
    drawn(page)
    if page.get_by_label("Release", exact=True).input_value() != "2.9.1":
        redrawn(page, lambda: page.get_by_label("Release", exact=True).select_option("2.9.1"))
    launches = rows(machine.document("launches/2.9.1/0")["cells"]["resnet18, batch 1, default"])
    with page.expect_download() as started:
        page.locator("#launches").get_by_role("button", name="CSV").click()
    with started.value.path().open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == len(launches)
    for line, launch in zip(lines, launches, strict=True):
        assert float(line["ratio"]) == launch["ratio"]
        assert line["start"] == launch["start"]
    with page.expect_download() as started:
        page.locator("#launches").get_by_role("button", name="JSON").click()
    assert [one["ratio"] for one in json.loads(started.value.path().read_text())] == [
        one["ratio"] for one in launches
    ]
    assert visit.faults == []


def test_a_cell_of_another_machine_is_found(reader: Visit, address: str, report: Report) -> None:
    """From the page of its model, and from an address that names the wrong machine."""
    of = {name: set(machine.lines()) for name, machine in report.machines.items()}
    machine, other, cell = next(
        (machine, other, cell)
        for machine, other in itertools.permutations(of, 2)
        for cell in sorted(of[other] - of[machine])
    )
    view = f"{address}report/cell.html#machine={machine}"
    for one in (f"{view}&model={cell.split(', ')[0]}", f"{view}&cell={quote(cell)}"):
        page = opened(reader, one)
        link = page.locator("#elsewhere").get_by_role("link", name=cell, exact=True).first
        redrawn(page, link.click)
        assert f"machine={other}" in page.url
        expect(page.locator("h1")).to_have_text(cell)
    assert reader.faults == []


def test_two_releases_are_compared_in_place(reader: Visit, address: str, report: Report) -> None:
    machine = next(one for one in report.machines.values() if len(one.entry["points"]) > 3)
    points = machine.entry["points"]
    page = opened(reader, f"{address}report/compare.html#machine={machine.name}")
    redrawn(page, lambda: page.get_by_label("From", exact=True).select_option(points[1]))
    redrawn(page, lambda: page.get_by_label("To", exact=True).select_option(points[3]))
    wanted = machine.document(f"pairs/{points[1]}/{points[3]}")
    assert page.locator(".answer").first.inner_text() == wanted["sentence"]
    # An address that names the newer one first is shown in order; a choice then changes one end.
    where = f"compare.html#machine={machine.name}&before={points[3]}&after={points[1]}"
    page = opened(reader, f"{address}report/{where}")
    redrawn(page, lambda: page.get_by_label("From", exact=True).select_option(points[2]))
    shown = [page.get_by_label(end, exact=True).input_value() for end in ("From", "To")]
    assert shown == [points[2], points[3]]
    page = opened(reader, f"{address}report/compare.html#before={points[1]}&after={points[1]}")
    assert page.locator(".answer").first.inner_text().startswith("Both are ")
    assert reader.faults == []


def test_a_heading_sorts_its_column(visit: Visit, address: str, report: Report) -> None:
    machine = next(iter(report.machines))
    page = opened(visit, f"{address}report/models.html#machine={machine}&batch=all")
    table = page.locator("#ratios table").first
    button = table.get_by_role("button", name="cold s")
    for order in ("ascending", "descending"):
        button.click()
        head = table.locator("th[aria-sort]")
        assert head.get_attribute("aria-sort") == order
        texts = [line["cold s"] for line in fields(table)]
        shown = [float(text) for text in texts if text != "-"]
        assert len(set(shown)) > 1
        assert shown == sorted(shown, reverse=order == "descending")


def test_the_numbers_of_a_sheet_are_sorted_as_numbers(visit: Visit, address: str) -> None:
    page = opened(visit, f"{address}report/index.html")
    shown = page.evaluate(
        """() => {
          const rows = [["never"], ["1,200 to 3,400 calls"], ["about 3 calls"], ["40 to 52 calls"]];
          const made = Page.sheet("x", { columns: ["pays after"], numbers: ["pays after"], rows });
          document.body.append(made);
          made.querySelector("th button").click();
          return [...made.querySelectorAll("tbody td, tbody th")].map((one) => one.textContent);
        }"""
    )
    assert shown == ["about 3 calls", "40 to 52 calls", "1,200 to 3,400 calls", "never"]


def test_no_text_in_a_csv_file_is_a_formula(visit: Visit, address: str) -> None:
    page = opened(visit, f"{address}report/index.html")
    with page.expect_download() as started:
        page.evaluate(
            """() => {
              const reasons = ['=HYPERLINK("http://x")', "a;=1+1", "-x - y"];
              const rows = reasons.map((reason) => ({ reason, value: -1.5 }));
              const made = Page.downloads("x", rows);
              document.body.append(made);
              made.querySelector("button").click();
            }"""
        )
    text = started.value.path().read_text()
    first = '"\'=HYPERLINK(""http://x"")"'
    assert text == f"reason,value\n{first},-1.5\na;'=1+1,-1.5\n'-x - y,-1.5\n"


# What it costs


def transferred(page: Page, site: Path, url: str) -> dict[str, int]:
    """The bytes of each file that a view loads, compressed as hosts of static pages do."""
    loaded: set[str] = set()
    page.on("response", lambda got: loaded.add(got.url))
    page.goto(url)
    drawn(page)
    page.wait_for_load_state("networkidle")
    return {
        one: compressed(site.parent / unquote(urlsplit(one).path).lstrip("/")) for one in loaded
    }


@functools.cache
def compressed(file: Path) -> int:
    """The bytes of a file, compressed as hosts of static pages do."""
    return len(gzip.compress(file.read_bytes(), 6))


def test_a_view_is_small(chromium: Browser, site: Path, address: str, pages: list[str]) -> None:
    for name in ["index.html", *(page for page in pages if "#" in page)]:
        with visited(chromium, address) as visit:
            sizes = transferred(visit.page, site, f"{address}report/{name}")
            most = MOST_FIRST_BYTES if name == "index.html" else MOST_VIEW_BYTES
            assert sum(sizes.values()) <= most, (name, sizes)


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


def test_a_long_table_can_be_filtered(visit: Visit, address: str, report: Report) -> None:
    machine = next(one for one in report.machines.values() if len(one.entry["points"]) > 3)
    before, after = machine.entry["points"][0], machine.entry["points"][-1]
    page = opened(
        visit,
        f"{address}report/compare.html#machine={machine.name}&before={before}&after={after}",
    )
    everything = rows(machine.document(f"pairs/{before}/{after}")["changes"])
    lines = page.locator("#all tbody tr")
    filtered = page.locator("#all").get_by_role("searchbox")
    filtered.fill("RESNET18, batch 1, default ")
    wanted = [row for row in everything if "resnet18, batch 1, default" in row["cell"]]
    assert 0 < len(wanted) < len(everything)
    assert lines.count() == len(wanted)
    filtered.fill("<img src=x onerror=alert(1)>")
    assert lines.all_inner_texts() == ["No line has this text."]
    filtered.fill("")
    assert lines.count() == min(len(everything), 200)
    assert visit.faults == []


def test_a_link_to_another_cell_starts_at_its_top(
    visit: Visit, address: str, report: Report
) -> None:
    machine = next(iter(report.machines))
    page = opened(visit, f"{address}report/cell.html#machine={machine}&model=resnet18")
    page.set_viewport_size(PHONE)
    link = page.locator("#cells table").get_by_role("link").last
    name = link.inner_text()
    link.scroll_into_view_if_needed()
    link.click()
    expect(page.locator("h1")).to_have_text(name, timeout=PATIENCE_MS)
    assert page.evaluate("scrollY") == 0


def test_a_page_in_one_file_has_its_picture_and_runs_nothing_else(
    visit: Visit, tmp_path: Path
) -> None:
    """`try --html`: hostile names and notes, no request, no script but those of the page."""
    attack = "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 1'>"
    outline = Outline(model="Net", parameters=1, inputs=[attack], torch="2.15.0", notes=[attack])
    made = [examples.measurement(attack, mode=mode) for mode in ("default", "max-autotune")]
    file = tmp_path / "told.html"
    result = TrialResult(outline, made, interrupted=False)
    file.write_bytes(view.as_html(Trial(attack), result, f"torchcompile-suite try {attack}"))
    visit.page.goto(file.as_uri())
    visit.page.wait_for_selector("figure[data-drawn]", timeout=PATIENCE_MS)
    assert visit.page.locator("figure svg.picture a").count() == 2
    assert visit.page.locator("table").count() >= 1
    assert visit.page.locator("h1").inner_text() == f"Does torch.compile pay for {attack}?"
    told = visit.page.locator("main").inner_text()
    assert f"Repeat it: torchcompile-suite try {attack}" in told
    assert visit.page.evaluate("window.owned") is None
    assert visit.page.locator("img").count() == 0
    visit.page.set_viewport_size(PHONE)
    width = visit.page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    assert visit.faults == [f"request to {file.as_uri()}"], "itself, and nothing else"
