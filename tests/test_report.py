"""The table says what the numbers mean."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.analysis import summaries, summary
from torchcompile_suite.analysis.ends import both_ends
from torchcompile_suite.cli import recorded, report
from torchcompile_suite.measurement import Measurement, Outcome, Status
from torchcompile_suite.modes import MODES
from torchcompile_suite.presentation import sheets, terminal
from torchcompile_suite.results import records
from torchcompile_suite.results.records import Record

from . import examples


def rows(*measurements: Measurement) -> list[summary.Row]:
    return summary.rows([Record("box", "01234567", "env", one, "2.9.1") for one in measurements])


def printed(*measurements: Measurement) -> str:
    out = StringIO()
    with redirect_stdout(out):
        terminal.Output().draw(sheets.measured(rows(*measurements)))
    return out.getvalue()


def test_a_minor_release_is_its_newest_patch_with_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert recorded.version_named("v2.4") == "2.4.1"
    (tmp_path / "results" / "box" / "2.4.0").mkdir(parents=True)
    assert recorded.version_named("v2.4") == "2.4.0"
    assert recorded.version_named("2.4.1") == "2.4.1"
    assert recorded.version_named("v2.9") == "2.9.1"


def test_a_row_holds_the_figures_with_their_intervals() -> None:
    (row,) = rows(examples.measurement())
    assert row.release == "2.9.1"
    assert row.ratio is not None
    assert row.ratio.value == pytest.approx(0.75, rel=0.01)
    assert row.ratio.low < 0.75 < row.ratio.high
    assert row.cold_compile_s == pytest.approx(30 - 0.03)
    assert row.warm_compile_s == pytest.approx(7.5, abs=0.05)
    assert row.break_even_calls == pytest.approx(30 / 0.01, rel=0.01)
    assert row.peak_memory_bytes == 500_000_000


def test_what_never_pays_says_never() -> None:
    (row,) = rows(examples.measurement(scale=2.0))
    assert row.break_even_calls == math.inf
    assert "never" in printed(examples.measurement(scale=2.0))


def test_nothing_is_claimed_inside_the_noise() -> None:
    assert "cannot tell" in printed(examples.measurement(scale=1.33))


def test_eager_has_no_compile_cost() -> None:
    (row,) = rows(examples.measurement(mode="eager"))
    assert row.cold_compile_s is None
    assert row.break_even_calls is None


def test_a_failed_cell_shows_its_outcome_and_reason() -> None:
    failed = examples.measurement(outcome=Outcome(Status.TIMEOUT, "a cold launch took 900 s"))
    assert "timeout: a cold launch took 900 s" in printed(failed)


def test_text_from_a_record_is_not_markup() -> None:
    failed = examples.measurement(outcome=Outcome(Status.CRASH, "[red]x[/red] [link=http://x]y"))
    assert "[red]x[/red] [link=http://x]y" in printed(failed)


def test_text_from_a_record_does_not_command_the_terminal() -> None:
    failed = examples.measurement(outcome=Outcome(Status.CRASH, "\x1b]0;owned\x07\x1b[2Jgone\r"))
    out = printed(failed)
    assert "gone" in out
    assert not {"\x1b", "\x07", "\r"} & set(out)


def test_modes_stand_in_the_order_of_the_axis() -> None:
    shown = rows(*(examples.measurement(mode=mode) for mode in reversed(list(MODES))))
    assert [row.cell.mode for row in shown] == list(MODES)


def test_both_ends_of_the_heap_stand_side_by_side() -> None:
    both = both_ends(
        [
            examples.twin("settled", 0.02, 0.017, (0, 0)),
            examples.twin("default", 0.02, 0.0272, (0, 4870)),
        ]
    )
    sheet = sheets.ends(both)
    default, settled = (dict(zip(sheet.columns, line, strict=True)) for line in sheet.lines)
    assert (default["heap"], settled["heap"]) == ("default", "settled")
    assert (default["eager ms"], default["compiled ms"]) == ("20", "27.2")
    assert (settled["eager ms"], settled["compiled ms"]) == ("20", "17")
    assert (default["page faults: eager"], default["faults: compiled"]) == ("0", "4,870")
    assert (default["malloc's share: eager"], default["share: compiled"]) == ("0%", "37%")


def test_both_ends_of_several_releases_name_them() -> None:
    ends = [
        examples.twin("settled", 0.02, 0.017, (0, 0)),
        examples.twin("default", 0.02, 0.0272, (0, 4870)),
    ]
    of_two = [
        Record("box", "01234567", "env", one, release)
        for release in ("2.4.1", "2.9.1")
        for one in ends
    ]
    sheet = report._both_ends(of_two)
    assert [line[sheet.columns.index("release")] for line in sheet.lines] == [
        *("2.4.1", "2.4.1", "2.9.1", "2.9.1")
    ]
    assert "machine" not in sheet.columns
    assert report._both_ends(of_two[:2]).columns == sheet.columns[1:]


def test_of_two_environments_a_cell_has_one_row(tmp_path: Path) -> None:
    for name, day in (("virtualenv-py3.11", 1), ("try", 2)):
        started_at = f"2026-01-0{day}T00:00:00+00:00"
        one = msgspec.structs.replace(examples.measurement(), started_at=started_at)
        records.append(records.path(tmp_path / "box", "01234567", name), one)
    assert len(records.read(tmp_path).records) == 2
    (latest,) = recorded.read_results(tmp_path).records
    assert latest.env_name == "try"


def test_single_calls_have_columns_where_there_are_any() -> None:
    made = examples.measurement()
    assert "one compiled ms" not in sheets.measured([rows(made)[0]]).columns
    launches = [
        msgspec.structs.replace(one, latency_s=[(0.05, 0.045)] * 15) for one in made.launches
    ]
    timed = rows(msgspec.structs.replace(made, launches=launches))[0]
    assert timed.eager_single_s is not None
    assert timed.single_s is not None
    assert timed.eager_single_s.value == pytest.approx(0.05)
    assert timed.single_s.value == pytest.approx(0.045)
    condensed = summaries.condensed(msgspec.structs.replace(made, launches=launches))
    assert condensed.launches[0].latency_s == []
    assert rows(condensed)[0] == timed, "the same without the samples"
    sheet = sheets.measured([timed, rows(made)[0]])
    assert [line[-2:] for line in sheet.lines] == [["50", "45"], ["-", "-"]]
    assert all(len(line) == len(sheet.columns) for line in sheet.lines)


def drawn(sheet: sheets.Sheet, columns: int) -> list[str]:
    out = terminal.Output()
    out.width = columns
    text = StringIO()
    with redirect_stdout(text):
        out.draw(sheet)
    return text.getvalue().splitlines()


LONG = sheets.Sheet(
    ["model", "why", "calls"],
    frozenset(["calls"]),
    [["a_model_with_a_long_name", "it is slower for three reasons", "1,234"], ["b", "", "5"]],
)


def test_a_table_on_a_narrow_screen_loses_no_word() -> None:
    lines = drawn(LONG, 50)
    assert all(len(line) == len(lines[0]) <= 50 for line in lines)
    words = " ".join(lines).translate(str.maketrans("│┃", "  ")).split()
    for line in (LONG.columns, *LONG.lines):
        for cell in line:
            assert set(cell.split()) <= set(words)


def test_a_heading_breaks_before_a_value() -> None:
    value = "0.82 [0.80, 0.83]"
    narrow = sheets.Sheet(["geometric mean [95 %]", "cannot tell"], frozenset(), [[value, "1"]])
    lines = drawn(narrow, 32)
    assert max(map(len, lines)) <= 32
    assert sum(line.startswith("┃") for line in lines) == 2
    assert [line for line in lines if line.startswith("│")] == [f"│ {value} │ 1        │"]


def test_a_table_has_the_width_of_its_text_where_there_is_room() -> None:
    assert drawn(LONG, 140)[3] == (
        "│ a_model_with_a_long_name │ it is slower for three reasons │ 1,234 │"
    )
    assert drawn(sheets.Sheet(["a", "b"], frozenset(), []), 140)[1] == "┃ a ┃ b ┃"
    assert drawn(sheets.Sheet(["a", "b"], frozenset(), [["", ""]]), 140)[3] == "│   │   │"


def test_a_stream_without_such_characters_gets_a_plain_frame() -> None:
    code = (
        "from torchcompile_suite.presentation import sheets, terminal\n"
        "terminal.Output().draw(sheets.Sheet(['a', 'b'], frozenset(), [['1', '2']]))"
    )
    variables = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:4] == ["| a | b |", "+---+---+", "| 1 | 2 |"]


def test_what_goes_into_a_comment_starts_no_markup_and_mentions_nobody() -> None:
    said = terminal.escaped("1.0 ![](http://evil.example/p.png) @org/team <details>")
    assert said == r"1.0 \!\[\](http://evil.example/p.png) @&#8203;org/team \<details\>"


def test_a_table_in_markdown_is_aligned() -> None:
    short = sheets.Sheet(
        ["model", "calls"], frozenset(["calls"]), [["b", "5"], ["a longer one", ""]]
    )
    assert terminal.markdown(short) == (
        "| model        |   calls |\n"
        "|--------------|---------|\n"
        "| b            |       5 |\n"
        "| a longer one |         |"
    )


def test_the_whole_counts_payoffs_and_names_the_extremes() -> None:
    made = [
        examples.measurement(f"model{number}", scale=scale)
        for number, scale in enumerate((0.5, 0.8, 2.0, 3.0))
    ]
    sheet = sheets.payoffs(rows(*made))
    (line,) = (dict(zip(sheet.columns, each, strict=True)) for each in sheet.lines)
    assert (line["phase"], line["mode"], line["cells"]) == ("inference", "default", "4")
    assert (line["faster"], line["slower"]) == ("2", "2")
    named = [where for _, where in sheets.extremes(rows(*made), 1).lines]
    assert named == ["model0, batch 1", "model3, batch 1"]
