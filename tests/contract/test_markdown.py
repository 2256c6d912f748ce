"""The summary in Markdown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.contract import markdown
from torchcompile_suite.contract.counts import Counts, Site
from torchcompile_suite.contract.markdown import Checked
from torchcompile_suite.errors import SuiteError

BREAK = Site("print", "model.py, forward", "GB0059", 12, "print(x)")
COUNTS = Counts(1, 30, kernels=3, launches=4, bytes=5120)
BROKEN = msgspec.structs.replace(COUNTS, graphs=3, kernels=2, graph_breaks=[BREAK, BREAK])


def checked(torch: str, counts: Counts | None, fault: str = "", model: str = "encoder") -> Checked:
    return Checked(model, "default", "cpu", torch, counts, fault)


def test_what_a_release_adds_is_said() -> None:
    found = [checked("2.16", BROKEN, "differs"), checked("2.9", COUNTS), checked("2.15", COUNTS)]
    assert list(markdown.between_releases(found)) == [
        "torch 2.15 changes no count of `encoder` (default, cpu; before: torch 2.9)",
        "torch 2.16 adds 2 graph breaks, 2 graphs, removes 1 kernel in `encoder` "
        "(default, cpu; before: torch 2.15)",
    ]
    # What is no number of its own differs, too.
    for changed, says in (
        ({"bytes": 9000}, "bytes, operators, kinds or what is known"),
        ({"guards": 90}, "guards from 30 to 90"),
        (
            {"bytes": 9000, "guards": 90},
            "bytes, operators, kinds or what is known, guards from 30 to 90",
        ),
    ):
        other = msgspec.structs.replace(COUNTS, **changed)
        (line,) = markdown.between_releases([checked("2.9", COUNTS), checked("2.15", other)])
        assert line.startswith(f"torch 2.15 changes {says}, and no other count, of `encoder`")
    # Without counts there is nothing to compare.
    found = [checked("2.15", COUNTS), checked("newest", None, "make fails")]
    assert list(markdown.between_releases(found)) == []


def test_the_summary_of_a_broken_contract() -> None:
    fault = "head\n  + graph break: ```</details> @x\n      remedy: none"
    text = markdown.markdown(
        [
            checked("2.15", BROKEN, fault, "<b>|`.py:make"),
            checked("2.15", COUNTS),
            checked("newest", None, "make fails: ValueError", "third"),
        ]
    )
    head = "<!-- compile-contract -->\n### torch.compile contract broken: 2 of 3\n\n| model"
    assert text.startswith(head)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 3
    # No cell ends early, and no markup starts.
    assert {line.replace("\\|", "").count("|") for line in table} == {table[0].count("|")}
    assert "\\<b\\>\\|" in table[2]
    first = text.partition("<details>")[2]
    assert first.startswith("<summary>&lt;b&gt;|`.py:make (default, cpu), torch 2.15</summary>")
    # What a fault says is text: its fences end no block.
    assert text.count("```") == 4
    assert "'''</details>" in first
    assert "make fails: ValueError" in text
    assert "left to eager" not in table[0]


def test_a_long_summary_fits_a_comment() -> None:
    found = [checked("2.15", BROKEN, "x" * 2000, f"model{number}") for number in range(50)]
    text = markdown.markdown(found)
    shown = text.count("<details>")
    assert 20 < shown < 50
    assert text.count("| model") == 51  # the whole table
    assert len(text) < 65_536  # GitHub's limit
    assert text.endswith(f"</details>\n\nAnd {50 - shown} more: see the output of the check.\n")


def test_the_summary_of_a_contract_that_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "contract.md"
    markdown.write(path, [checked("2.15", COUNTS)])
    text = path.read_text()
    assert "contract kept: 1" in text
    assert "<details>" not in text
    with pytest.raises(SuiteError, match="cannot write"):
        markdown.write(path / "contract.md", [])
