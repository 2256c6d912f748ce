"""The campaign for a lent GPU: what travels, what is measured, and the page of what was said."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from evidence.gpu import campaign, page, prepare

from torchcompile_suite import workloads
from torchcompile_suite.cell import Cell
from torchcompile_suite.host.files import read_lines
from torchcompile_suite.request import Plan

from .conftest import ROOT, ReleaseEnvironment

LOGS = sorted(page.PLACE.glob("*.jsonl"))


def test_each_cell_is_a_workload_s_and_stands_once() -> None:
    for cells in (campaign.KINDS, campaign.CLAIMED):
        assert len(set(cells)) == len(cells)
        assert all(workloads.get(cell.workload) for cell in cells)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_page_is_made_of_its_log(log: Path) -> None:
    steps = read_lines(log, campaign.Step)
    assert len(steps) == len(log.read_text().splitlines()), "every line can be read"
    assert log.with_suffix(".md").read_text() == page.page(log.stem, steps)


def test_a_step_that_fails_is_a_line_and_the_next_one_is_made(tmp_path: Path) -> None:
    made = campaign.Campaign(tmp_path, "cpu", 60.0, Plan(), leave_out=1)
    done: list[str] = []

    def not_reached() -> campaign.Step:
        done.append("left out")
        raise AssertionError

    def fail() -> campaign.Step:
        raise OSError("the disk is full")

    made.step("B", "left out", not_reached)
    made.step("B", "fails", fail)
    made.step("B", "prints", lambda: made.program("-c", "print('{}')", read=msgspec.json.decode))
    made.step("B", "ends", lambda: made.program("-c", "raise SystemExit('no device')"))
    steps = read_lines(tmp_path / "log.jsonl", campaign.Step)
    assert [step.name for step in steps] == ["fails", "prints", "ends"]
    assert [step.text for step in steps] == [
        "OSError: the disk is full",
        "{}",
        "exit status 1: no device",
    ]
    assert not done


def test_no_step_begins_after_the_last_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def not_reached() -> campaign.Step:
        raise AssertionError

    campaign.Campaign(tmp_path, "cpu", 1.0, Plan()).step("A", "late", not_reached)
    assert capsys.readouterr().out == "no time for late\n"
    assert not (tmp_path / "log.jsonl").exists()


def test_without_wheels_the_program_says_what_fetches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "WHEELS", tmp_path)
    monkeypatch.delenv(prepare.STARTED, raising=False)
    with pytest.raises(SystemExit, match=r"python -m evidence\.gpu\.prepare"):
        prepare.activate()


@pytest.mark.slow
def test_a_cell_becomes_a_result_that_travels(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    """In the Python of a release, as on the machine that is lent."""
    code = (
        # The release's own packages come first: the others only fill the gaps, as the wheels do.
        "import sys; sys.path.append(sys.argv[2]);"
        "from pathlib import Path; from evidence.gpu import campaign as c;"
        "plan = c.Plan(min_pairs=2, min_timed_s=0.1, max_timed_s=0.5);"
        "made = c.Campaign(Path(sys.argv[1]), 'cpu', 500.0, plan);"
        "c.CLAIMED[:] = [c.Cell('small_1x1', 1, 'eager')]; c.TRY[:] = ['--version'];"
        "c.claimed(made); made.close()"
    )
    site = Path(msgspec.__file__).parents[1]
    variables = newest.variables(PYTHONPATH=f"{ROOT / 'src'}:{ROOT}")
    done = newest.run("-c", code, str(tmp_path), str(site), env=variables)
    assert done.returncode == 0, done.stderr
    (first, _) = read_lines(tmp_path / "log.jsonl", campaign.Step)
    assert first.cell == Cell("small_1x1", 1, "eager")
    assert first.text.count(" of eager's time") >= campaign.LAUNCHES
    assert (tmp_path / "results.tar").stat().st_size > 1000
