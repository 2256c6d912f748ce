"""The stories as pages of the site: links, tables, and what they are about."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from torchcompile_suite import workloads
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue
from torchcompile_suite.site import build, stories

from . import divided
from .conftest import ROOT

FOLDER = ROOT / "docs" / "stories"


class _Links(HTMLParser):
    """The addresses of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def test_every_story_is_a_page_about_something_that_exists() -> None:
    told = stories.read(FOLDER)
    assert {one.file for one in told} == {
        f"story-{path.stem}.html" for path in FOLDER.glob("*.md") if path.stem != "README"
    }
    minors = {".".join(one.version.split(".")[:2]) for one in catalogue.read()}
    for one in told:
        assert set(one.releases) <= minors, one.file
        assert all(workloads.get(name) for name in one.models)
    assert sum(bool(one.releases) for one in told) >= 9


def test_the_pages_lead_to_pages_of_the_site_and_to_other_hosts_only(tmp_path: Path) -> None:
    divided.write(tmp_path / "results")
    assert not build.build(tmp_path / "results", tmp_path / "report", told=FOLDER)
    pages = {path.name: path.read_text() for path in (tmp_path / "report").glob("*.html")}
    told = stories.read(FOLDER)
    assert len(told) == sum(name.startswith("story-") for name in pages)
    for name in (one.file for one in told):
        for address in _Links(pages[name]).found:
            place = address.partition("#")[0]
            assert not place or place in pages or address.startswith(("https://", "../index")), name
        assert "<!--" not in pages[name]
    index = _Links(pages[stories.INDEX]).found
    assert {one.file for one in told} <= set(index)
    assert "story-max-autotune-since-2.9.html" in _Links(pages["releases.html"]).found


def test_without_stories_there_is_no_page_of_them(tmp_path: Path) -> None:
    divided.write(tmp_path / "results")
    build.build(tmp_path / "results", tmp_path / "report", told=tmp_path)
    assert not list((tmp_path / "report").glob("stor*.html"))
    assert stories.INDEX not in (tmp_path / "report" / "index.html").read_text()


def _one(folder: Path, text: str) -> stories.Story:
    (folder / "README.md").write_text("- [One](one.md)\n- [Two](two.md)\n")
    (folder / "one.md").write_text(text)
    (folder / "two.md").write_text("# Two\n")
    return stories.read(folder)[0]


def test_a_story_s_links_and_tables(tmp_path: Path) -> None:
    story = _one(
        tmp_path,
        "# One & all\n\n<!-- about: 2.9 2.10; resnet18; gpu training -->\nSee [two](two.md), "
        "[a script](../../evidence/a.py) and [#1](https://example.org/1).\n\n| a |\n|---|\n| 1 |\n",
    )
    assert (story.title, story.releases, story.models, story.only) == (
        "One & all",
        ["2.9", "2.10"],
        ["resnet18"],
        ["gpu", "training"],
    )
    assert _Links(str(story.html)).found == ["story-two.html", "https://example.org/1"]
    assert "a script and" in story.html
    assert re.search(
        r'role="region"[^>]*tabindex="0"><table>.*</table></div>', story.html, re.DOTALL
    )


def test_a_story_has_no_html_of_its_own(tmp_path: Path) -> None:
    attack = "<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1))"
    story = _one(tmp_path, f"# {attack}\n\n{attack}\n")
    assert "<script" not in story.html
    assert "<img" not in story.html
    assert not _Links(str(story.html)).found


def test_a_story_without_a_title_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"one\.md does not begin with a title"):
        _one(tmp_path, "text")
