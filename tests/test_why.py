"""Why a call takes its time: groups, families, two releases, and the words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.analysis import summaries, why
from torchcompile_suite.attribution import (
    Attribution,
    Direction,
    Kind,
    Operator,
    Place,
    Split,
    Step,
)
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli.app import app
from torchcompile_suite.measurement import OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.presentation import stories
from torchcompile_suite.presentation import why as words
from torchcompile_suite.presentation.answers import pays
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import records
from torchcompile_suite.results.parsing import decode
from torchcompile_suite.results.records import Record

from . import examples
from .schemas import validated

NAMES = ("eager", "compiled")
MS = 1e-3


def operator(called: str, module: str = "", line: int = 1, name: str = "") -> Operator:
    return Operator(name or called, called, module, "Module", f"net.py:{line}: x = self.f(x)")


def step(name: str, operators: Sequence[int], ms: float, kind: Kind = "generated") -> Step:
    return Step(name, kind, list(operators), ms * MS, 1, weights=kind == "copy")


def split(steps: list[Step], rest: dict[Place, float] | None = None) -> Split:
    rest_s: dict[Place, float] = {place: ms * MS for place, ms in (rest or {}).items()}
    call_s = sum(each.seconds for each in steps) + sum(rest_s.values())
    return Split(call_s, 0.0, steps, rest_s, 0.0)


def attribution(
    operators: list[Operator],
    eager_ms: Sequence[float],
    compiled: list[Step],
    rest: dict[Place, float] | None = None,
    code: dict[str, str] | None = None,
) -> Launch:
    eager = [
        step(each.called, [at], ms, "operator")
        for at, (each, ms) in enumerate(zip(operators, eager_ms, strict=True))
    ]
    made = Attribution(operators, split(eager), split(compiled, rest), code or {})
    return Launch("cold", OK, attribution=made)


def times(found: why.Why) -> dict[str, tuple[float, float]]:
    return {
        each.what: (
            round(each.before_s.value / MS, 6),
            round(each.after_s.value / MS, 6),
        )
        for each in found.families
    }


BLOCK = [operator("conv2d", "conv", 1), operator("batch_norm", "bn", 2), operator("relu", "", 3)]


def test_operators_and_the_kernel_that_computes_them_are_a_group() -> None:
    one = attribution(
        BLOCK,
        [5.0, 2.0, 1.0],
        [
            step("copy_0", [0], 1.5, "copy"),
            step("convolution", [0], 4.0, "library"),
            step("fused_1", [1, 2], 0.5),
        ],
        {"guards": 0.01, "entry": 0.02, "buffers": 0.03, "exit": 0.04},
    )
    found = why.compiled_against_eager([one, one])
    assert times(found) == {
        "batch_norm, relu": (3.0, 0.5),
        "copy of weights before conv2d": (0.0, 1.5),
        "conv2d": (5.0, 4.0),
        "outside of the operators": (0.0, 0.06),
        "buffers between kernels": (0.0, 0.03),
        "guards": (0.0, 0.01),
    }
    assert list(times(found))[:2] == ["batch_norm, relu", "copy of weights before conv2d"]
    assert sum(each.difference_s.value for each in found.families) == pytest.approx(
        found.after.calls_s[0] - found.before.calls_s[0]
    )


def test_an_operator_in_two_kernels_joins_them() -> None:
    one = attribution(BLOCK, [5.0, 2.0, 1.0], [step("a", [0, 1], 3.0), step("b", [1, 2], 3.0)])
    assert list(times(why.compiled_against_eager([one]))) == ["conv2d, batch_norm, relu"]


def test_the_backward_pass_of_an_operator_is_another_group() -> None:
    steps = [
        step("forward_0", [0], 1.0),
        msgspec.structs.replace(step("backward_0", [0], 3.0), direction="backward"),
    ]
    one = attribution(BLOCK[:1], [2.0], steps)
    assert times(why.compiled_against_eager([one])) == {
        "backward of conv2d": (0.0, 3.0),
        "conv2d": (2.0, 1.0),
    }


def test_groups_alike_are_one_family_and_one_that_is_unlike_stands_alone() -> None:
    operators = [operator("relu", f"block{at}", at) for at in range(4)]
    compiled = [step(f"fused_{at}", [at], ms) for at, ms in enumerate((1.0, 1.1, 0.9, 9.0))]
    found = why.compiled_against_eager([attribution(operators, [2.0] * 4, compiled)] * 2)
    slow, rest = found.families
    assert [group.module for group in slow.groups] == ["block3"]
    assert len(rest.groups) == 3
    assert rest.difference_s.value == pytest.approx(-3 * MS)


def test_what_moves_between_kernels_of_a_group_is_no_difference() -> None:
    before = attribution(BLOCK, [1.0] * 3, [step("a", [0, 1], 3.0), step("b", [2], 1.0)])
    after = attribution(BLOCK, [1.0] * 3, [step("a", [0], 1.0), step("b", [1, 2], 3.0)])
    found = why.call_against_call([before], [after])
    assert times(found) == {"conv2d, batch_norm, relu": (4.0, 4.0)}


def test_equal_copies_of_both_releases_are_no_difference() -> None:
    copies = [step(f"copy_{at}", [0], 2.0, "copy") for at in range(3)]
    one = attribution(BLOCK, [5.0, 2.0, 1.0], [*copies, step("f", [0, 1, 2], 9.0)])
    found = why.call_against_call([one, one], [one, one])
    assert times(found)["copy of weights before conv2d"] == (6.0, 6.0)
    _, second = words.sentences(found, ("v2.8", "v2.9"))
    assert second.startswith("No part of the call makes a difference")
    assert not list(words.remedies(found))


def test_a_kernel_that_copies_weights_beside_its_work_says_so() -> None:
    both = msgspec.structs.replace(step("fused", [1, 2], 9.0), weights=True)
    one = attribution(BLOCK, [5.0, 2.0, 1.0], [step("convolution", [0], 5.0, "library"), both])
    found = why.compiled_against_eager([one, one])
    assert times(found)["batch_norm, relu and copies of weights"] == (3.0, 9.0)
    assert "freezing" in next(words.remedies(found))


def test_copies_alike_are_one_line() -> None:
    operators = [operator("conv2d", f"block{at}", at) for at in range(3)]
    compiled = [step(f"copy_{at}", [at], 2.0, "copy") for at in range(3)]
    compiled += [step("convolution", [at], 1.0, "library") for at in range(3)]
    found = why.compiled_against_eager([attribution(operators, [1.0] * 3, compiled)] * 2)
    assert [len(family.groups) for family in found.families] == [3, 3]


def test_two_releases_name_the_same_line_in_two_ways() -> None:
    old = [operator("Conv2d", "conv", 1, "l_conv"), operator("relu", "", 3, "x_1")]
    new = [operator("conv2d", "conv", 1, "x"), operator("relu", "", 3, "x_2")]
    found = why.call_against_call(
        [attribution(old, [1.0, 1.0], [step("c", [0], 2.0, "library"), step("f", [1], 1.0)])],
        [attribution(new, [1.0, 1.0], [step("c", [0], 2.0, "library"), step("f", [1], 4.0)])],
    )
    assert [tuple(each) for each in times(found).values()] == [(1.0, 4.0), (2.0, 2.0)]


def test_a_line_that_became_two_operators_is_one_group() -> None:
    old = [operator("BatchNorm2d", "bn", 2)]
    new = [operator("add_", "bn", 2), operator("batch_norm", "bn", 2)]
    found = why.call_against_call(
        [attribution(old, [1.0], [step("a", [0], 1.0)])],
        [attribution(new, [1.0, 1.0], [step("a", [0], 0.5), step("b", [1], 2.0)])],
    )
    assert list(times(found).values()) == [(1.0, 2.5)]


def test_a_launch_with_other_code_does_not_count() -> None:
    one = attribution(BLOCK, [5.0, 2.0, 1.0], [step("a", [0, 1, 2], 3.0)])
    other = attribution(BLOCK, [5.0, 2.0, 1.0], [step("a", [0, 1], 3.0), step("b", [2], 1.0)])
    found = why.compiled_against_eager([one, other, one])
    assert len(found.before.splits) == 2
    _, second, *_ = words.sentences(found, NAMES)
    assert second == "Launches with other code than the first, which do not count: 1."


def test_without_a_launch_the_others_stay_beside_their_own() -> None:
    before, after = _launches(1.0, 2.0, 4.0), _launches(2.0, 5.0, 8.0)
    before[1] = attribution(BLOCK, [10.0, 4.0, 2.0], [step("f", [0, 1, 2], 9.0)])
    found = why.call_against_call(before, after)
    for side, launches in ((found.before, before), (found.after, after)):
        own = [launches[at].attribution for at in (0, 2)]
        assert side.calls_s == [one.mode.call_s for one in own if one]
    assert found.other_code == 1


def test_one_launch_is_sure_of_nothing() -> None:
    _, *others = words.sentences(why.compiled_against_eager(_launches(6.0)), NAMES)
    assert others == ["One launch gives no interval, so no difference is sure."]


def _launches(*compiled_ms: float) -> list[Launch]:
    return [
        msgspec.structs.replace(
            attribution(
                BLOCK,
                [10.0, 4.0, 2.0],
                [
                    step("copy_0", [0], ms / 4, "copy"),
                    step("convolution", [0], 8.0, "library"),
                    step("f", [1, 2], 1.0),
                ],
            ),
            series="s",
            round=number,
        )
        for number, ms in enumerate(compiled_ms, 1)
    ]


def test_the_sentence_names_losses_and_gains_that_are_sure() -> None:
    found = why.compiled_against_eager(_launches(6.0, 6.1, 6.2))
    first, second, *_ = words.sentences(found, NAMES)
    assert first.startswith("A call takes 16 ms (eager) and 10.5 ms (compiled): 0.66")
    assert second == (
        "It loses 1.53 ms in copy of weights before conv2d (`conv`) and gains 5 ms in "
        "batch_norm, relu and 2 ms in conv2d (`conv`)."
    )
    freezing, layout = words.remedies(found)
    assert "freezing" in freezing
    assert "channels_last" in layout
    assert words.sheet(found, NAMES).lines[0][1] == "batch_norm, relu"


def test_a_line_of_torch_s_own_may_move_between_releases() -> None:
    def of(line: int) -> Launch:
        conv = Operator("x", "conv2d", "0", "Conv2d", f"container.py:{line}: input = module(input)")
        return attribution([conv, *BLOCK[1:]], [5.0, 2.0, 1.0], [step("a", [0], 4.0)])

    found = why.call_against_call([of(219)] * 2, [of(250)] * 2)
    assert times(found)["conv2d"] == (4.0, 4.0)


def test_launches_that_disagree_give_no_reason() -> None:
    found = why.compiled_against_eager(_launches(6.0, 6000.0))
    _, second = words.sentences(found, NAMES)
    assert second.startswith("Cannot tell why: too few launches agree")
    assert not list(words.remedies(found))


def test_parts_that_do_not_add_up_are_told() -> None:
    one = _launches(6.0)[0].attribution
    assert one is not None
    short = msgspec.structs.replace(one.mode, call_s=one.mode.call_s * 1.25)
    launch = Launch("cold", OK, attribution=msgspec.structs.replace(one, mode=short))
    found = why.compiled_against_eager([launch] * 2)
    assert list(words.sentences(found, NAMES))[-1] == (
        "The parts of the compiled call add up to 20% less than it."
    )


def test_the_code_of_the_largest_difference_is_compared_without_numbers() -> None:
    def one(number: int, ms: float, loop: str) -> Launch:
        code = f"void cpp_fused_relu_{number}()\n{{\n    {loop}\n}}"
        name = f"cpp_fused_relu_{number}"
        steps = [step(name, [0], ms)]
        return attribution(BLOCK[:1], [1.0], steps, code={f"1/{name}": code})

    found = why.call_against_call(
        [one(0, 1.0, "vectorised"), one(0, 1.01, "vectorised")],
        [one(3, 9.0, "scalar"), one(3, 9.1, "scalar")],
    )
    changes = words.code_changes(found)
    assert changes[0] == "conv2d:"
    assert "-    vectorised" in changes
    assert "+    scalar" in changes
    assert not any("relu_3" in line for line in changes)


def test_json_has_all_families_and_intervals() -> None:
    found = why.compiled_against_eager(_launches(6.0, 6.1))
    data = validated("why", words.as_json([Cell("net", 1, "default")], NAMES, found))
    assert [call["name"] for call in data["calls"]] == list(NAMES)
    assert len(data["families"]) == len(found.families)
    assert len(data["families"][0]["difference_s"]) == 3
    assert data["families"][0]["groups"][0]["operators"][0]["called"]


def test_a_step_of_an_operator_that_is_not_there_is_refused() -> None:
    one = attribution(BLOCK, [1.0] * 3, [step("a", [0, 1, 2], 3.0)])
    text = msgspec.json.encode(one).replace(b'"operators":[0,1,2]', b'"operators":[0,1,3]')
    with pytest.raises(msgspec.ValidationError, match="an operator that is not there"):
        msgspec.json.decode(text, type=Launch)


def _history(*compiled_ms: float) -> dict[str, list[Launch]]:
    return {
        f"2.{minor}.0": _launches(ms, ms * 1.01, ms * 1.02)
        for minor, ms in enumerate(compiled_ms, 8)
    }


def test_a_story_is_drafted_for_each_release_that_changed_the_call() -> None:
    history = _history(2.0, 2.01, 9.0)
    cell = Cell("net", 1, "max-autotune")
    (change,) = stories.changes(history)
    assert (change.what, change.before, change.after) == ("compiled over eager", "2.9.0", "2.10.0")
    page = list(stories.draft(cell, history))
    assert page[0] == "# net, batch 1, max-autotune: what 3 releases changed, and where"
    assert sum(line.startswith("## ") for line in page) == 1
    assert any("copy of weights before conv2d" in line for line in page)
    assert (
        "torchcompile-suite why net --batch-size 1 --mode max-autotune --release v2.10.0 "
        "--against v2.9.0 --code" in page
    )


def test_no_release_is_blamed_for_what_another_run_measured() -> None:
    """All of a second run may be slower: nothing in either run shows that."""
    before, after = _history(2.0, 9.0).values()
    assert list(stories.changes({"2.8.0": before, "2.9.0": after}))
    for other in ({"series": "another"}, {"series": ""}, {"round": 0}):
        run = [msgspec.structs.replace(one, **other) for one in after]
        assert not list(stories.changes({"2.8.0": before, "2.9.0": run}))
    # A launch that is missing on one side moves no other to its place.
    (change,) = stories.changes({"2.8.0": before, "2.9.0": after[1:]})
    assert len(change.why.ratios) == 2
    assert change.factor == next(stories.changes({"2.8.0": before[1:], "2.9.0": after[1:]})).factor


def test_a_reason_comes_from_one_machine() -> None:
    cell = Cell("resnet18", 1, "default")
    slow, fast = (examples.divided(copy_s=each) for each in (0.004, 0.002))

    def of(*made: tuple[str, str, Measurement]) -> list[stories.ComparedReason]:
        found = [Record(machine, "", "", one, release) for machine, release, one in made]
        divided = summaries.divided_by_place(found)
        return list(stories.reasons(divided, "2.8.0", "2.9.1"))

    both = [("box", "2.8.0", slow), ("box", "2.9.1", fast)]
    (reason,) = of(*both)
    assert reason.cell == cell
    assert reason.says.startswith("2.9.1 against 2.8.0, compiled over eager: 0.86 [")
    assert "It gains " in reason.says
    assert reason.says.endswith("(on box)")
    assert not of(both[0], ("other", "2.9.1", fast))
    # Another machine that has one of the releases hides nothing; the last one that has both counts.
    assert of(*both, ("other", "2.8.0", fast)) == of(*both)
    others = [("other", release, one) for _, release, one in both]
    (of_other,) = of(*both, *others)
    assert of_other.says.endswith("(on other)")


def test_report_names_the_reasons_of_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one machine only that machine's, and of one model only that model's."""
    monkeypatch.chdir(tmp_path)
    for name in ("box.one", "box.two"):
        folder = tmp_path / "results" / name
        folder.mkdir(parents=True)
        facts = {"machine": name, "cpu": "Box", "num_cpu": "2", "ram": "8 GiB", "device": "cpu"}
        (folder / "machine.json").write_text(json.dumps(facts))
        for release, copy_s in (("2.9.1", 0.004), ("2.15.0", 0.002)):
            made = [examples.measurement("resnet18"), examples.measurement("vgg11")]
            if name == "box.two":
                made.append(examples.divided(release, copy_s=copy_s))
            for one in made:
                file = records.path(folder, ledger.commit_of()[release], "env-py3.11")
                records.append(file, examples.at(release, one))
    report = ["report", "v2.9", "v2.15"]
    for more, told in {
        (): True,
        ("--machine", "box.two"): True,
        ("--machine", "box.one"): False,
        ("--model", "vgg11"): False,
    }.items():
        said = CliRunner().invoke(app, [*report, *more])
        assert said.exit_code == 0, said.output
        assert ("(on box.two)" in said.stdout) == told, more


def test_a_stranger_s_release_in_a_draft_s_command_is_quoted() -> None:
    history = _history(2.0, 9.0)
    page = stories.draft(
        Cell("net", 1, "default"), {"1; ls": history["2.8.0"], "2.9.0": history["2.9.0"]}
    )
    (command,) = (line for line in page if line.startswith("torchcompile-suite why"))
    assert "v1; ls" in shlex.split(command)


def test_a_divided_cell_that_failed_has_its_reason_and_no_figure() -> None:
    failed = msgspec.structs.replace(examples.divided(), outcome=Outcome(Status.CRASH, "boom"))
    answer = pays.attribution([Record("m", "", "", failed, "2.9.1")])
    assert answer.sentence == "None of 1 cell has a number."
    (line,) = answer.sheet.lines
    assert "crash: boom" in line


def test_of_divided_records_the_newest_comes_last(tmp_path: Path) -> None:
    for name, day in (("a", 27), ("b", 26)):
        one = msgspec.structs.replace(examples.divided(), started_at=f"2026-11-{day}")
        records.append(records.path(tmp_path, "0" * 40, name), one)
    assert [one.env_name for one in summaries.read_divided(tmp_path)] == ["b", "a"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--history", "--json", "o.json", "--against", "v2.8"), "leave --against, --json out"),
        (("--history", "--dtype", "bfloat16", "--device", "cpu"), "leave --dtype, --device out"),
        (("--machine", "box"), "leave --machine out"),
    ],
)
def test_options_that_do_not_fit_a_history_are_refused(
    options: tuple[str, ...], words: str
) -> None:
    done = CliRunner().invoke(app, ["why", "resnet18", *options])
    assert done.exit_code == 1
    assert words in done.stderr


def test_a_history_without_a_change_has_no_story() -> None:
    assert not list(stories.changes(_history(2.0, 2.01, 2.02)))


_ms = st.floats(0.001, 1e4)
_text = st.text(max_size=20)
_operators = st.lists(st.builds(Operator, *[_text] * 5), min_size=1, max_size=5)


@st.composite
def _any_launch(draw: st.DrawFn) -> Launch:
    operators = draw(_operators)
    steps = st.builds(
        Step,
        name=_text,
        kind=st.sampled_from(get_args(Kind)),
        operators=st.lists(st.integers(0, len(operators) - 1), max_size=3),
        seconds=_ms,
        direction=st.sampled_from(get_args(Direction)),
        weights=st.booleans(),
    )
    rest = st.dictionaries(st.sampled_from(get_args(Place)), st.floats(-1, 1))
    splits = st.builds(Split, _ms, _ms, st.lists(steps, max_size=6), rest, _ms)
    return Launch("cold", OK, attribution=Attribution(operators, draw(splits), draw(splits)))


def test_launches_whose_steps_are_on_the_other_side_do_not_count_together() -> None:
    """Both have one step: the first in the compiled call, the second in eager."""
    step = Step("s", "operator", [0], 1.0)
    one, none = Split(1.0, 1.0, [step], {}, 1.0), Split(1.0, 1.0, [], {}, 1.0)
    launches = [
        Launch("cold", OK, attribution=Attribution([Operator("", "", "", "", "")], *sides))
        for sides in ((none, one), (one, none))
    ]
    assert why.compiled_against_eager(launches).other_code == 1


@given(st.lists(_any_launch(), min_size=1, max_size=3))
def test_any_launches_have_an_answer(launches: list[Launch]) -> None:
    """Records of strangers divide calls in any way."""
    cell = Cell("m", 1, "default", protocol="divided")
    measurement = Measurement(cell, OK, launches, "2026-11-27T03:00:00+00:00", 1.0)
    assert decode(msgspec.json.encode(measurement)) == measurement
    record = records.Record("machine", "c", "e", measurement, "2.9.1")
    sentence, sheet = pays.attribution([record])
    assert sentence
    assert {len(line) for line in sheet.lines} == {len(sheet.columns)}
    history = {"2.8.0": launches, "2.9.1": list(reversed(launches))}
    assert "\n".join(stories.draft(cell, history))
