"""What a notebook shows: a measurement and a comparison, whose texts may be hostile."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

import torchcompile_suite
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.measurement import Measurement, Outcome, Status
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import records

from . import examples

HOSTILE = "<script>alert(1)</script><img src=x onerror='a()'>\"\x1b[2J$\\href{javascript:a()}{b}$"


class Shown(HTMLParser):
    """The tags with their attributes, and the texts, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(page: str) -> list[str]:
    """The texts of a page that has nothing but texts and tables."""
    found = Shown(page)
    tables = {"table", "thead", "tbody", "tr", "th", "td"}
    assert {tag for tag, _ in found.tags} <= {"div", "p"} | tables
    assert found.tags[0] == ("div", {"class": "tex2jax_ignore mathjax_ignore"}), "no formula"
    scrolls = {"class", "style", "role", "aria-label", "tabindex"}
    assert {name for _, attributes in found.tags[1:] for name in attributes} <= scrolls
    assert "\x1b" not in page
    return found.texts


def public(measurement: Measurement) -> torchcompile_suite.Measurement:
    return torchcompile_suite.Measurement(**msgspec.structs.asdict(measurement))


def test_a_measurement_is_a_table_with_its_verdict() -> None:
    texts = shown(public(examples.measurement("model"))._repr_html_())
    assert texts[0].startswith("Compile it")
    assert {"eager", "default", "of eager's time"} <= set(texts)
    assert any(text.startswith("0.75 [") for text in texts)


def test_texts_of_a_measurement_are_no_markup() -> None:
    failed = public(examples.measurement("model", outcome=Outcome(Status.CRASH, HOSTILE)))
    assert any("<script>alert(1)</script>" in text for text in shown(failed._repr_html_()))


def test_the_measurement_is_stored_as_any_other() -> None:
    made = examples.measurement("model")
    assert msgspec.json.encode(public(made)) == msgspec.json.encode(made)


def test_a_comparison_is_a_table_of_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for release, commit in ledger.commit_of().items():
        if release not in ("2.4.1", "2.9.1"):
            continue
        journal = records.path(tmp_path / "results" / "box", commit, "env-py3.11")
        journal.parent.mkdir(parents=True, exist_ok=True)
        slower = release == "2.9.1"
        made = examples.measurement("model", scale=2.0 if slower else 1.0)
        records.append(journal, examples.at(release, made))
        outcome = Outcome(Status.CRASH, HOSTILE) if slower else made.outcome
        other = examples.measurement("other", outcome=outcome)
        records.append(journal, examples.at(release, other))
    with pytest.raises(SuiteError, match="name each release once"):
        torchcompile_suite.compare_releases("v2.9", "v2.9.1")
    comparison = torchcompile_suite.compare_releases("v2.4", "v2.9", machine="box")
    assert isinstance(comparison, torchcompile_suite.Comparison)
    texts = shown(comparison._repr_html_())
    assert texts[0].startswith("2.4.1 to 2.9.1 on box: 1 of 2 cells can be compared.")
    assert "worse" in texts
    assert any("<script>alert(1)</script>" in text for text in texts)
