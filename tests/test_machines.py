"""One rule decides whose results a command shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.analysis import summaries
from torchcompile_suite.asv import command
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import app
from torchcompile_suite.host import machine
from torchcompile_suite.measurement import METHOD, OK, Measurement, Outcome, Status
from torchcompile_suite.releases import catalogue, environments, ledger
from torchcompile_suite.results import cached, machines, records
from torchcompile_suite.results.machines import Choice, NoResultsError, Standing
from torchcompile_suite.results.records import Record

from . import examples
from .conftest import ROOT
from .schemas import validated


def value(
    machine: str, release: str, what: str, measured: bool = True, newest: bool = True
) -> Record:
    """A record of that cell, with numbers, by the newest method, or not."""
    launches = [msgspec.structs.replace(examples.launch(), method=METHOD if newest else 1)]
    outcome = OK if measured else Outcome(Status.CRASH, "killed")
    made = Measurement(Cell(what, 1, "default"), outcome, launches, "2026-11-21T03:00:00", 60.0)
    return Record(machine, "01234567", "env", made, release)


def values(machine: str, release: str, count: int, newest: bool = True) -> list[Record]:
    return [value(machine, release, f"w{number}", newest=newest) for number in range(count)]


def test_a_handful_of_this_machine_does_not_hide_a_history() -> None:
    held = values("here", "2.9.1", 1) + values("big", "2.9.1", 40)
    choice = machines.choose(held, ["2.9.1"], here="here", labels=["v2.9"])
    assert choice.machine == "big"
    assert "this machine (here) has fewer of v2.9" in choice.line
    assert machines.choose(held, ["2.9.1"], here="here", own=True) == Choice("here")


def test_of_equally_complete_machines_it_is_this_one_and_needs_no_line() -> None:
    held = values("here", "2.9.1", 3) + values("big", "2.9.1", 3)
    assert machines.choose(held, ["2.9.1"], here="here") == Choice("here")


def test_a_failure_on_this_machine_is_a_result_too() -> None:
    held = [value("here", "2.9.1", "cell", False, False), *values("big", "2.9.1", 40)]
    assert machines.choose(held, ["2.9.1"], here="here", own=True) == Choice("here")
    assert machines.choose(held[:1], ["2.9.1"], here="here") == Choice("here")


def test_another_release_on_this_machine_does_not_count() -> None:
    held = values("here", "2.4.1", 9) + values("big", "2.9.1", 1)
    choice = machines.choose(held, ["2.9.1"], here="here", labels=["v2.9"])
    assert choice.machine == "big"
    assert "this machine (here) has none of v2.9" in choice.line
    assert "--machine" in choice.line
    assert "\n" not in choice.line


def test_values_of_the_newest_method_count_before_all_values() -> None:
    held = values("old", "2.9.1", 40, newest=False) + values("new", "2.9.1", 10)
    assert machines.choose(held, ["2.9.1"], here="x").machine == "new"
    choice = machines.choose(held, ["2.9.1"], here="x", completeness_first=True)
    assert choice.machine == "old"
    assert "(there are: new, old)" in choice.line


def test_a_tie_is_decided_by_the_name() -> None:
    held = values("b", "2.9.1", 3) + values("a", "2.9.1", 3)
    assert machines.choose(held, ["2.9.1"], here="x").machine == "a"


def test_two_releases_need_cells_that_both_have() -> None:
    apart = [value("apart", "2.4.1", "a"), value("apart", "2.9.1", "b")]
    one = values("one", "2.4.1", 50)
    both = values("both", "2.4.1", 1) + values("both", "2.9.1", 2)
    asked = ["2.4.1", "2.9.1"]
    assert machines.choose([*apart, *one, *both], asked, here="x").machine == "both"
    assert machines.choose([*apart, *one, *both], asked, here="one").machine == "both"
    with pytest.raises(NoResultsError, match=r"no machine has results of v2\.4 and v2\.9"):
        machines.choose(one, asked, here="one", labels=["v2.4", "v2.9"])


def test_a_release_that_failed_here_is_shown_from_here() -> None:
    """Else `report --fail-on-regression` would judge another machine."""
    here = [*values("here", "2.4.1", 3), value("here", "2.9.1", "w0", measured=False)]
    other = values("other", "2.4.1", 9) + values("other", "2.9.1", 9)
    asked = ["2.4.1", "2.9.1"]
    assert machines.choose([*here, *other], asked, here="here", own=True) == Choice("here")


def test_gaps_of_this_machine_can_be_shown() -> None:
    held = values("here", "2.4.1", 1) + values("other", "2.4.1", 9) + values("other", "2.9.1", 9)
    asked = ["2.4.1", "2.9.1"]
    assert machines.choose(held, asked, here="here").machine == "other"
    assert machines.choose(held, asked, here="here", every=False, own=True) == Choice("here")
    assert machines.choose(held, asked, here="x", every=False).machine == "other"


@pytest.mark.usefixtures("empty_cache")
def test_bench_shows_what_this_run_has_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a machine without results, as each new one is. tests/test_asv.py has a real run."""
    monkeypatch.chdir(tmp_path)
    newest = catalogue.read()[-1].version
    folder = tmp_path / "results" / machine.detect().machine
    journal = records.path(folder, ledger.commit_of()[newest], "virtualenv-py3.11")
    models = iter(["earlier", "later"])

    def asv(name: str, *_: str, **__: object) -> None:
        if name == "run":
            records.append(journal, examples.at(newest, examples.measurement(next(models))))

    monkeypatch.setattr(command, "run", asv)
    for own, other in (("earlier", "later"), ("later", "earlier")):
        done = CliRunner().invoke(app.app, ["bench"])
        assert done.exit_code == 0, done.output
        assert own in done.stdout
        assert other not in done.stdout


@pytest.mark.usefixtures("empty_cache")
def test_bench_of_two_releases_measures_in_turns_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path / "environments"))
    monkeypatch.setattr(environments, "free_bytes", lambda: 10**12)
    shutil.copy(ROOT / "asv.conf.json", tmp_path)
    here = machine.detect().machine
    called: list[tuple[str, ...]] = []

    def asv(*arguments: str, **_: object) -> None:
        called.append(arguments)
        if arguments[0] != "run":
            return
        (commits,) = (one[9:] for one in arguments if one.startswith("HASHFILE:"))
        assert Path(commits).read_text() == "v2.4.1\nv2.9.1\n"
        for release, scale in (("2.4.1", 1.0), ("2.9.1", 0.5)):
            commit = ledger.commit_of()[release]
            journal = records.path(tmp_path / "results" / here, commit, "virtualenv-py3.11")
            records.append(journal, examples.at(release, examples.measurement(scale=scale)))

    monkeypatch.setattr(command, "run", asv)
    done = CliRunner().invoke(app.app, ["bench", "v2.9", "v2.4"])
    assert done.exit_code == 0, done.output
    assert [arguments[0] for arguments in called] == ["run", "publish", "compare"]
    assert "--interleave-rounds" in called[0]
    assert called[2][1:] == ("v2.4.1", "v2.9.1", "--machine", here)
    assert f"2.4.1 to 2.9.1 on {here}: 1 of 1 cells can be compared." in done.stdout
    assert "0.50 [0.50, 0.50] │ compiled │ resnet18, batch 1" in done.stdout, "what matters most"


def test_the_named_machine_always_wins() -> None:
    held = values("here", "2.9.1", 3) + values("other", "2.4.1", 1)
    assert machines.choose(held, ["2.9.1"], here="here", named="other") == Choice("other")
    bare = machines.choose([], ["2.9.1"], here="here", named="bare", known=["bare"])
    assert bare == Choice("bare")


def test_a_wrong_name_gets_the_known_ones_in_one_line() -> None:
    held = values("b", "2.9.1", 3) + values("a", "2.4.1", 1)
    with pytest.raises(NoResultsError, match=r"no results of machine 'c'.*of: a, b") as error:
        machines.choose(held, [], here="b", named="c")
    assert "\n" not in str(error.value)


def test_nothing_asked_takes_any_release() -> None:
    held = values("a", "2.4.1", 1) + values("b", "2.4.1", 1) + values("b", "2.9.1", 1)
    held += [value("b", "2.5.1", "w7")]
    assert machines.choose(held, [], here="x").machine == "b"


def test_a_cell_in_two_releases_is_two_values() -> None:
    many = [value("many", release, "a") for release in ("2.4.1", "2.9.1", "2.15.0")]
    broad = [value("broad", "2.15.0", what) for what in "ab"]
    assert machines.choose([*many, *broad], [], here="x").machine == "many"


@given(
    st.lists(
        st.builds(
            value,
            st.sampled_from("abc"),
            st.sampled_from(["2.4.1", "2.9.1"]),
            st.sampled_from("wxyz"),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
    )
)
def test_the_site_opens_with_the_machine_that_commands_take(held: list[Record]) -> None:
    first = machines.in_order(machines.standings(held))[0]
    assert machines.choose(held, [], here="elsewhere").machine == first


def test_of_two_with_one_standing_the_class_comes_first() -> None:
    standing = Standing(2, 3)
    equal = {"class:a": standing, "b": standing, "c": standing}
    assert machines.in_order(equal, first={"class:a"}) == ["class:a", "b", "c"]
    assert machines.in_order(equal, first={"c"}) == ["c", "b", "class:a"]


def test_no_results_at_all() -> None:
    with pytest.raises(NoResultsError, match="nox -s bench"):
        machines.choose([], ["2.9.1"], here="x")


def test_records_say_what_was_measured_and_by_which_method() -> None:
    def record(measurement: Measurement) -> Record:
        return Record("box", "01234567", "env", measurement, "2.9.1")

    old = examples.measurement()
    launches = [msgspec.structs.replace(one, method=METHOD) for one in old.launches]
    new = msgspec.structs.replace(old, launches=launches)
    failed = examples.measurement(outcome=Outcome(Status.CRASH, "killed"))
    found = [machines.standings([record(one)])["box"] for one in (old, new, failed)]
    assert found == [Standing(0, 1), Standing(1, 1), Standing(0, 0)]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Results of three machines; the names of those that a command reads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cached, "folder", lambda: tmp_path / "cache")
    monkeypatch.setenv(machine.MACHINE_VARIABLE, "here")
    for name, releases in (("here", ["2.9.1"]), ("a", ["2.4.1", "2.9.1"]), ("b", ["2.4.1"])):
        for release in releases:
            one = examples.measurement()
            launches = [
                msgspec.structs.replace(launch, environment=examples.environment(release))
                for launch in one.launches
            ]
            file = records.path(tmp_path / "results" / name, release, "env")
            file.parent.mkdir(parents=True, exist_ok=True)
            records.append(file, msgspec.structs.replace(one, launches=launches))
    names: list[str] = []
    real = summaries.read_machine

    def watched(folder: Path) -> records.Records:
        names.append(folder.name)
        return real(folder)

    monkeypatch.setattr(summaries, "read_machine", watched)
    return names


def test_only_a_named_machine_is_read(read: list[str]) -> None:
    done = CliRunner().invoke(app.app, ["report", "v2.4", "v2.9", "--machine", "a"])
    assert (done.exit_code, done.stderr, read) == (0, "", ["a"]), done.output


def test_where_this_machine_has_nothing_the_rule_sees_all(read: list[str]) -> None:
    done = CliRunner().invoke(app.app, ["report", "v2.4", "v2.9", "--format", "json"])
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("results of a: this machine (here) has none of v2.4.1 and v2.9.1")
    assert validated("report-releases", done.stdout)["machine"] == "a"
    assert sorted(set(read)) == ["a", "b", "here"]
    done = CliRunner().invoke(app.app, ["report", "v2.9", "--machine", "x"])
    assert done.exit_code == 1
    assert "no results of machine 'x'; there are results of: a, b, here" in done.output


def test_a_comparison_names_a_model_s_figures_only_if_asked(read: list[str]) -> None:
    asked = ["report", "v2.4", "v2.9", "--machine", "a"]
    short, whole = (
        CliRunner().invoke(app.app, [*asked, *more]).stdout
        for more in ([], ["--model", "resnet18"])
    )
    assert all(len(line) <= 100 for line in short.splitlines()[1:]), short
    assert "time that changed" not in short
    assert "time that changed" in whole
    assert whole.startswith(short.partition("What matters")[0])
