"""Generated code without torch: targets, occupancy, records, comparisons, claims, commands."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite import matrix, targets
from torchcompile_suite.analysis import claims, coverage, generated, summaries
from torchcompile_suite.analysis.claims import Verdict
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import app
from torchcompile_suite.compiled import GraphBreak
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.generated import Generated
from torchcompile_suite.launch.generate.assembly import occupancy
from torchcompile_suite.launch.generate.recorder import Node, Recorder
from torchcompile_suite.measurement import OK, Launch, Measurement, Outcome, Status
from torchcompile_suite.presentation import sheets
from torchcompile_suite.results import records
from torchcompile_suite.targets import Target

from . import examples
from .examples import SM90, code
from .examples import generated as made
from .schemas import validated

COMMITS = {"2.9.1": "a" * 40, "2.15.0": "b" * 40}


def store(results: Path, machine: str, *measurements: Measurement) -> None:
    for one in measurements:
        release = records.release(one)
        records.append(records.path(results / machine, COMMITS[release], "env-py3.11"), one)


pytestmark = pytest.mark.usefixtures("empty_cache")


def test_targets_are_those_of_the_issue_and_their_order_is_kept() -> None:
    assert list(targets.read())[:3] == ["cuda:sm80", "cuda:sm90", "cuda:sm100"]
    for name, target in targets.read().items():
        assert name == f"cuda:sm{target.capability}"
        assert Cell("m", 1, "default", target=name).target == name
        assert target.shared_a_block + target.shared_reserved <= target.shared_a_multiprocessor
        assert target.threads_a_multiprocessor % targets.WARP == 0
    with pytest.raises(SuiteError, match="cuda:sm90"):
        targets.get("cuda:sm1")


# Target, warps of a block, registers, shared memory; share, limit. test_generate compares thousands
# with NVIDIA's own header.
CALCULATED = [
    ("cuda:sm90", 8, 32, 0, 1.0, ""),
    ("cuda:sm90", 8, 64, 0, 0.5, "registers"),
    ("cuda:sm90", 4, 255, 0, 0.125, "registers"),
    ("cuda:sm90", 1, 16, 0, 0.5, "blocks"),
    ("cuda:sm90", 2, 18, 8, 1.0, ""),
    ("cuda:sm90", 4, 16, 100_000, 0.125, "shared memory"),
    ("cuda:sm80", 8, 32, 40_000, 0.5, "shared memory"),
    ("cuda:sm86", 4, 40, 0, 1.0, ""),
    ("cuda:sm75", 4, 64, 0, 1.0, ""),
    ("cuda:sm90", 4, 16, 232_449, 0.0, "shared memory"),
]


@pytest.mark.parametrize(("name", "warps", "registers", "shared", "share", "limit"), CALCULATED)
def test_occupancy_of_examples(
    name: str, warps: int, registers: int, shared: int, share: float, limit: str
) -> None:
    assert occupancy(targets.get(name), warps, registers, shared) == (share, limit)


@given(
    st.sampled_from(list(targets.read().values())),
    st.integers(1, 32),
    st.integers(0, 255),
    st.integers(0, 240_000),
)
def test_more_of_a_resource_never_raises_occupancy(
    target: Target, warps: int, registers: int, shared: int
) -> None:
    here = occupancy(target, warps, registers, shared)
    assert 0 <= here.share <= 1
    assert (here.share == 1) == (here.limited_by == "")
    assert occupancy(target, warps, registers + 8, shared).share <= here.share
    assert occupancy(target, warps, registers, shared + 512).share <= here.share


def node(*parts: str, reads: tuple[str, ...] = (), library: bool = False) -> Node:
    """A node that writes a buffer of its first part's name."""
    return Node(parts, frozenset(reads), frozenset(parts[:1]), library, 40, 20, ("aten.add",))


def write(recorder: Recorder, kernel: str, source: str, *nodes: Node) -> None:
    """Tell of a graph with one kernel, which holds all nodes that are no library's."""
    recorder.nodes(list(nodes))
    recorder.kernel(kernel, [part for one in nodes if not one.library for part in one.parts])
    recorder.source(kernel, source)
    recorder.launched(kernel)
    recorder.code(source)


def test_kernels_of_two_graphs_may_have_one_name() -> None:
    recorder = Recorder()
    for source in ("the first", "the second"):
        recorder.begun(backward=False)
        write(recorder, "triton_poi_0", source, node("op0"))
    forward, backward = recorder.result(False, {})
    assert (forward.triton_kernels, forward.triton_launches) == (2, 2)
    assert [(kernel.name, kernel.launches) for kernel in forward.kernels] == [
        ("triton_poi_0", 1),
        ("triton_poi_0", 1),
    ]
    assert [code for _, code in recorder.sources()] == ["the first", "the second"]
    assert backward is None
    assert forward.cuda_graphs is None


def test_a_chain_names_the_last_reason_between_whole_kernels() -> None:
    recorder = Recorder()
    recorder.begun(backward=False)
    recorder.nodes([node("op0"), node("op1", "op2", reads=("op0",)), node("op3", reads=("op1",))])
    for name, parts in (("a", ["op0"]), ("b", ["op1", "op2"]), ("c", ["op3"])):
        recorder.kernel(name, parts)
        recorder.launched(name)
    recorder.not_fused("op1", "op0", lambda: "early")
    recorder.not_fused("op0", "op1_op2", lambda: "late\n   and long " + "!" * 4000)
    recorder.not_fused("op2", "op0", lambda: "last, but of a part")
    recorder.not_fused("op0", "op3", lambda: "of others")
    forward, _ = recorder.result(False, {})
    (chain,) = forward.chains
    assert chain.kernels == ["a", "b", "c"]
    assert chain.reasons[0].startswith("late and long !")
    assert len(chain.reasons[0]) == 200
    assert chain.reasons[1] == ""


def test_launches_outside_of_cuda_graphs() -> None:
    recorder = Recorder()
    recorder.begun(backward=False)  # as a whole
    write(recorder, "a", "", node("op0"), node("op1", library=True))
    recorder.cuda_graph(skipped=False)
    recorder.begun(backward=False)  # divided: two parts, three launches between them
    write(recorder, "b", "", node("op0"), *(node(f"op{at}", library=True) for at in range(1, 6)))
    recorder.partitioned(3, [1, 2])
    recorder.cuda_graph(skipped=False)
    recorder.cuda_graph(skipped=False)
    recorder.begun(backward=True)  # not at all
    write(recorder, "c", "", node("op0"), node("op1", library=True))
    forward, backward = recorder.result(True, {})
    assert backward is not None
    assert (forward.launches, forward.cuda_graphs, forward.outside_launches) == (8, 3, 3)
    assert forward.launches_with_cuda_graphs == 6
    assert (backward.launches, backward.launches_with_cuda_graphs) == (2, 2)


def test_a_part_that_torch_skips_launches_all_it_has() -> None:
    recorder = Recorder()
    for skipped in ((True, False), (True, True)):
        recorder.begun(backward=False)
        launches = [node(f"op{at}", library=True) for at in range(1, 6)]
        write(recorder, "a", "", node("op0"), *launches)
        recorder.partitioned(1, [2, 3])
        for one in skipped:
            recorder.cuda_graph(skipped=one)
    forward, _ = recorder.result(True, {})
    assert (forward.cuda_graphs, forward.outside_launches) == (1, 1 + 2 + 6)


def test_what_a_graph_outside_of_cuda_graphs_launches_inside_counts() -> None:
    recorder = Recorder()
    recorder.begun(backward=False)  # two parts with CUDA graphs, and a loop between them
    write(recorder, "a", "", node("op0"), *(node(f"op{at}", library=True) for at in range(1, 6)))
    recorder.partitioned(0, [2, 1], True)
    recorder.cuda_graph(skipped=False)
    recorder.cuda_graph(skipped=False)
    forward, _ = recorder.result(True, {})
    assert (forward.launches, forward.cuda_graphs, forward.outside_launches) == (6, 2, 3)


def test_records_with_counts_are_kept_apart_from_those_with_times(tmp_path: Path) -> None:
    store(tmp_path, "box", made(), made("vit16x6x384"))
    records.append(
        records.path(tmp_path / "box", COMMITS["2.9.1"], "env-py3.11"), examples.measurement()
    )
    for read in (records.read, summaries.read):
        content = read(tmp_path)
        assert not content.problems
        assert [one.measurement.cell.target for one in content.records] == [""]
        assert [one.measurement.cell.target for one in content.generated] == [SM90, SM90]
        assert content.generated[0].measurement == made()


def test_a_record_that_claims_success_without_counts_is_refused(tmp_path: Path) -> None:
    bad = made()
    bad = msgspec.structs.replace(bad, launches=[Launch("cold", OK)])
    file = records.path(tmp_path / "box", COMMITS["2.15.0"], "env-py3.11")
    records.append(file, bad)
    content = records.read(tmp_path)
    assert not content.generated
    assert "counts" in str(content.problems)


def test_a_change_of_one_kernel_is_a_change(tmp_path: Path) -> None:
    store(
        tmp_path,
        "box",
        made(release="2.9.1"),
        made(release="2.15.0", forward=code(triton=4)),
        made("vit16x6x384", release="2.9.1"),
        made("vit16x6x384", release="2.15.0"),
        made("gpt_decode", release="2.15.0"),
        made("gpt_prefill", release="2.9.1"),
        made(
            "gpt_prefill",
            release="2.15.0",
            outcome=Outcome(Status.UNSUPPORTED, "asks the device"),
        ),
    )
    found = records.read(tmp_path).generated
    comparison = generated.compare(found, "2.9.1", "2.15.0")
    assert comparison.compared == 2
    assert {(one.name, one.before, one.after) for one in comparison.differences} == {
        ("Triton kernels", 3, 4),
        ("launches", 5, 6),
        ("nodes after fusion", 5, 6),
    }
    assert {one.cell.workload for one in comparison.differences} == {"resnet18"}
    gaps = {gap.cell.workload: gap.reason for gap in comparison.gaps}
    assert gaps == {
        "gpt_decode": "not generated with 2.9.1",
        "gpt_prefill": "2.15.0: unsupported: asks the device",
    }
    changed = [
        step for step in generated.steps(generated.rows(found), ["2.9.1", "2.15.0"]) if step.before
    ]
    assert [one for step in changed for one in step.differences] == comparison.differences
    assert len(changed) == comparison.compared


def test_a_count_that_one_release_does_not_know_is_neither_more_nor_less() -> None:
    some, other = (Cell(name, 1, "default", target="cuda:sm90") for name in ("a", "b"))
    differences = [
        generated.Difference(some, generated.LAUNCHES, 40, None),
        generated.Difference(other, generated.LAUNCHES, 40, 20),
        generated.Difference(some, "graphs", None, 2),
    ]
    sheet = sheets.generated_counts(generated.Comparison("2.4.1", "2.5.1", 2, differences, []))
    assert sheet.lines == [[generated.LAUNCHES, "0", "1", "b: 40 to 20"]]


def test_a_release_without_code_is_no_change_and_hides_none(tmp_path: Path) -> None:
    commits = {"2.4.1": "c" * 40, "2.6.0": "d" * 40, **COMMITS}
    unsupported = Outcome(Status.UNSUPPORTED, "asks the device")
    for one in (
        made(release="2.4.1"),
        made(release="2.6.0", outcome=unsupported),
        made(release="2.9.1", forward=code(triton=4)),
        made(release="2.15.0", forward=code(triton=4)),
    ):
        file = records.path(tmp_path / "box", commits[records.release(one)], "env-py3.11")
        records.append(file, one)
    rows = generated.rows(records.read(tmp_path).generated)
    steps = generated.steps(rows, ["2.4.1", "2.6.0", "2.9.1", "2.15.0"])
    assert [(step.row.release, step.before) for step in steps] == [
        ("2.4.1", ""),
        ("2.6.0", ""),
        ("2.9.1", "2.4.1"),
        ("2.15.0", "2.9.1"),
    ]
    assert [one.name for one in steps[2].differences] == [
        "Triton kernels",
        "launches",
        "nodes after fusion",
    ]
    assert not steps[3].differences
    # The order is that of the caller, who may have commits. Other releases do not count.
    back = generated.steps(rows, ["2.15.0", "2.4.1"])
    assert [(step.row.release, step.before) for step in back] == [
        ("2.15.0", ""),
        ("2.4.1", "2.15.0"),
    ]


def _of_generation(generation: int, release: str) -> Measurement:
    one = made(release=release)
    (launch,) = one.launches
    assert launch.generated is not None
    other = msgspec.structs.replace(launch.generated, generation=generation)
    return msgspec.structs.replace(one, launches=[msgspec.structs.replace(launch, generated=other)])


def test_counts_without_the_bandwidth_are_left_out(
    tmp_path: Path,
) -> None:
    store(tmp_path, "box", _of_generation(1, "2.9.1"), _of_generation(1, "2.15.0"))
    assert [one.release for one in records.read(tmp_path).generated] == ["2.9.1"]
    store(tmp_path, "box", _of_generation(2, "2.15.0"))
    found = records.read(tmp_path)
    assert [one.release for one in found.generated] == ["2.9.1", "2.15.0"]
    assert not found.problems
    assert generated.compare(found.generated, "2.9.1", "2.15.0").compared == 1


@pytest.mark.parametrize(
    ("release", "alike"),
    [("2.13.0", True), ("2.14.0.dev20260601", False), ("2.16.0", False), ("no version", False)],
)
def test_the_bandwidth_counts_since_the_release_that_asks_for_it(release: str, alike: bool) -> None:
    assert records.counted_alike(_of_generation(1, release)) is alike
    assert records.counted_alike(_of_generation(2, release))


def test_machines_that_disagree_are_found(tmp_path: Path) -> None:
    store(tmp_path, "one", made(), made("vit16x6x384"))
    store(tmp_path, "two", made(), made("vit16x6x384", forward=code(triton=7)))
    found = records.read(tmp_path).generated
    ((release, cell, machines),) = generated.disagreements(found)
    assert (release, cell.workload, machines) == ("2.15.0", "vit16x6x384", ["one", "two"])
    assert len(generated.rows(found)) == 2


def test_machines_of_two_versions_that_count_alike_do_not_disagree(tmp_path: Path) -> None:
    for generation, machine in enumerate(("one", "two"), 1):
        store(tmp_path, machine, _of_generation(generation, "2.9.1"))
    assert len(found := records.read(tmp_path).generated) == 2
    assert generated.disagreements(found) == []


def test_machines_may_word_a_graph_break_in_their_own_way(tmp_path: Path) -> None:
    for machine, reason in (("one", "a builtin"), ("two", "the builtin print (GB0059)")):
        kept = made()
        (launch,) = kept.launches
        assert launch.generated is not None
        breaks = [GraphBreak(reason, "model.py:3")]
        code = msgspec.structs.replace(launch.generated, graph_breaks=breaks)
        launches = [msgspec.structs.replace(launch, generated=code)]
        store(tmp_path, machine, msgspec.structs.replace(kept, launches=launches))
    assert generated.disagreements(records.read(tmp_path).generated) == []


def test_sums_over_both_passes() -> None:
    with_graphs = {"cuda_graphs": 1, "outside_launches": 2}
    one = made(forward=code(**with_graphs), backward=code(4, 6, **with_graphs)).generated
    assert one is not None
    counts = generated.counts_of(one)
    assert counts["launches"] == 15
    assert counts["of them backward"] == 10
    assert counts["with CUDA graphs"] == 6
    without = generated.counts_of(made().generated)  # type: ignore[arg-type]
    assert "with CUDA graphs" not in without
    assert "of them backward" not in without


def test_coverage_asks_for_no_reason_where_nothing_is_timed() -> None:
    covered = coverage.coverage([made()], [made().cell], "cpu")
    assert (covered.ok, covered.missing, covered.unexplained) == (1, [], [])


def verdicts(*code: Measurement) -> dict[str, claims.Judged]:
    return {judged.claim.id: judged for judged in claims.judge([], "cpu", code)}


def test_claims_about_counts_are_judged_by_generated_code() -> None:
    without = code(triton=41, library=30)
    graphs = code(triton=41, library=30, cuda_graphs=1, outside_launches=0)
    judged = verdicts(
        made("vit16x6x384", forward=without),
        made("vit16x6x384", "reduce-overhead", forward=graphs),
        made("vit32x12x768", forward=without),
        made("vit32x12x768", "reduce-overhead", forward=graphs),
        made("softmax_matmul", forward=code(1, 1)),
        made("entropy_in_memory", forward=code(1, 0)),
    )
    small = judged["vit-small-71x-fewer-launches"]
    assert (small.verdict, small.ours, small.interval) == (Verdict.CONFIRMED, 71.0, None)
    medium = judged["vit-medium-122x-fewer-launches"]
    assert (medium.verdict, medium.ours) == (Verdict.NOT_MEASURABLE, 71.0)
    assert "30 of them calls of libraries" in medium.reason
    assert judged["softmax-fuses-to-one-gpu-kernel"].verdict is Verdict.CONFIRMED
    assert judged["entropy-is-one-gpu-kernel"].verdict is Verdict.CONFIRMED
    missing = judged["cuda-graphs-make-40-launches-one"]
    assert missing.verdict is Verdict.NOT_MEASURABLE
    assert "no code was generated" in missing.reason
    # What needs a clock stays out of reach.
    assert judged["vit-small-reduce-overhead-36-percent"].verdict is Verdict.NOT_MEASURABLE


@pytest.mark.parametrize(
    ("triton", "library", "verdict"),
    [
        (41, 30, Verdict.CONFIRMED),
        (60, 0, Verdict.CONTRADICTED),  # fewer, and nothing that could be more than one kernel
        (59, 1, Verdict.NOT_MEASURABLE),
        (51, 31, Verdict.NOT_MEASURABLE),  # before a replay, a launch may copy the inputs
        (140, 31, Verdict.CONTRADICTED),  # more than the document's, with that copy, too
    ],
)
def test_a_library_call_may_be_several_kernels(triton: int, library: int, verdict: Verdict) -> None:
    with_graphs = code(triton, library, cuda_graphs=1, outside_launches=0)
    judged = verdicts(
        made("vit16x6x384", forward=code(triton, library)),
        made("vit16x6x384", "reduce-overhead", forward=with_graphs),
    )
    assert judged["vit-small-71x-fewer-launches"].verdict is verdict


def test_a_failed_generation_is_no_verdict() -> None:
    outcome = Outcome(Status.UNSUPPORTED, "asks the device")
    judged = verdicts(made("softmax_matmul", outcome=outcome))
    reason = judged["softmax-fuses-to-one-gpu-kernel"].reason
    assert "asks the device" in reason


def test_report_prints_what_was_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store(
        tmp_path / "results",
        "box",
        made(release="2.9.1"),
        made(release="2.15.0", forward=code(triton=4)),
    )
    for release, commit in COMMITS.items():
        measured = examples.measurement()
        launches = [
            msgspec.structs.replace(one, environment=examples.environment(f"{release}+cu132"))
            for one in measured.launches
        ]
        records.append(
            records.path(tmp_path / "results" / "box", commit, "env-py3.11"),
            msgspec.structs.replace(measured, launches=launches),
        )
    one = CliRunner().invoke(app.app, ["report", "v2.15.0", "--machine", "box"])
    assert one.exit_code == 0, one.output
    assert "cuda:sm90" in one.output
    both = CliRunner().invoke(app.app, ["report", "v2.9", "v2.15.0", "--machine", "box"])
    assert both.exit_code == 0, both.output
    assert "3 counts changed, cells compared: 1" in both.output
    arguments = ["report", "v2.9", "v2.15.0", "--machine", "box", "--format", "json"]
    content = validated("report-releases", CliRunner().invoke(app.app, arguments).output)
    assert content["generated"]["compared"] == 1
    assert len(content["generated"]["differences"]) == 3
    # A machine with nothing but such code is told which machines have times.
    store(tmp_path / "results", "coder", made(release="2.15.0"))
    none = CliRunner().invoke(app.app, ["claims", "--machine", "coder"])
    assert "no results of machine 'coder'; there are results of: box" in none.output


def test_a_report_of_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = records.path(tmp_path / "results" / "box", COMMITS["2.15.0"], "env-py3.11")
    for workload in ("resnet18", "resnet50"):
        records.append(file, examples.at("2.15.0", examples.measurement(workload)))
    for release in ("2.9.1", "2.15.0"):
        store(tmp_path / "results", "box", made("vgg11", release=release))
        older = examples.at(release, examples.measurement("resnet18"))
        store(tmp_path / "results", "box", older)
    report = ["report", "v2.15", "--machine", "box", "--model"]
    known = CliRunner().invoke(app.app, [*report, "resnet50", "--format", "json"])
    (row,) = json.loads(known.stdout)
    assert row["cell"]["workload"] == "resnet50"
    code_only = CliRunner().invoke(app.app, [*report, "vgg11"])
    assert code_only.exit_code == 0, code_only.output
    assert "vgg11" in code_only.stdout
    assert "resnet" not in code_only.stdout
    assert "ratio: time" not in code_only.stdout, "what explains a table that is not there"
    line = (
        "torchcompile-suite: no cell here has the model 'resnet19'; similar: resnet18; resnet50\n"
    )
    both = ["report", "v2.9", "v2.15", "--machine", "box", "--format", "json", "--model"]
    for arguments in (report, both, ["report", "--model"]):
        unknown = CliRunner().invoke(app.app, [*arguments, "resnet19"])
        assert (unknown.exit_code, unknown.stderr) == (1, line)
    # A model whose counts did not change is a known one.
    same = json.loads(CliRunner().invoke(app.app, [*both, "vgg11"]).stdout)
    assert (same["changes"], same["generated"]["compared"]) == ([], 1)
    # No advice to see each figure beside each figure.
    texts = ["report", "v2.9", "v2.15", "--machine", "box"]
    for more, advised in ((), True), (("--all",), False):
        said = CliRunner().invoke(app.app, [*texts, *more]).stdout
        assert ("--all, or --model NAME" in said) == advised
    twice = CliRunner().invoke(app.app, ["report", "v2.15", "2.15.0"])
    assert "name each release once: v2.15, 2.15.0" in twice.stderr


def test_releases_that_were_only_generated_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    store(results, "box", made(release="2.9.1"), made(release="2.15.0", forward=code(triton=4)))
    answer = CliRunner().invoke(app.app, ["report", "v2.9", "v2.15.0"])
    assert answer.exit_code == 0, answer.output
    assert "3 counts changed, cells compared: 1" in answer.stdout
    assert "No machine has times of both v2.9.1 and v2.15.0" in answer.stderr
    answer = CliRunner().invoke(app.app, ["report", "v2.9", "v2.15.0", "--format", "json"])
    assert len(validated("report-targets", answer.stdout)["generated"]["differences"]) == 3
    for commit in COMMITS.values():  # another machine has times
        records.append(
            records.path(results / "other", commit, "env-py3.11"), examples.measurement()
        )
    answer = CliRunner().invoke(app.app, ["report", "v2.9", "v2.15.0", "--machine", "box"])
    assert answer.exit_code == 0, answer.output
    gate = CliRunner().invoke(app.app, ["report", "v2.9", "v2.15.0", "--fail-on-regression"])
    assert gate.exit_code == 1
    assert "v2.15.0" in gate.stderr, "code alone passes no gate of times"


@pytest.mark.parametrize(
    ("after", "status"),
    [
        (examples.measurement(scale=1.5), 1),
        (examples.measurement(outcome=Outcome(Status.CRASH, "killed")), 1),
        (examples.measurement(), 0),
    ],
)
def test_a_report_ends_with_1_for_what_got_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: Measurement, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    other = examples.measurement("other")
    store(tmp_path / "results", "box", examples.measurement(), other)
    store(tmp_path / "results", "box", *(examples.at("2.15.0", one) for one in (after, other)))
    arguments = ["report", "v2.9", "v2.15.0", "--machine", "box"]
    told = CliRunner().invoke(app.app, arguments)
    gate = CliRunner().invoke(app.app, [*arguments, "--fail-on-regression"])
    assert (told.exit_code, gate.exit_code) == (0, status), gate.output
    assert gate.stdout == told.stdout, "the gate is no error: it says the same"


def test_a_report_names_machines_that_disagree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "results", "one", made())
    store(tmp_path / "results", "two", made(forward=code(triton=7)))
    answer = CliRunner().invoke(app.app, ["report", "v2.15.0"])
    assert answer.exit_code == 0, answer.output
    assert "the machines one, two have different code" in answer.stderr


def test_an_unknown_target_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app.app, ["open", "softmax_matmul", "--target", "cuda:sm1"])
    assert answer.exit_code == 1
    assert "cuda:sm90" in answer.output


def test_an_output_that_is_no_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    answer = CliRunner().invoke(app.app, ["open", "softmax_matmul", "--output", "file"])
    assert answer.exit_code == 1
    assert "file cannot be written" in " ".join(answer.output.split())


def test_every_core_point_with_a_target_has_a_pattern() -> None:
    core = matrix.core_generated()
    assert not any(cell.target for cell in matrix.core_cells())
    assert {cell.target for cell in core} == {matrix.GENERATED_TARGET}
    assert {cell.phase for cell in core} == {"inference", "training"}
    assert all(matrix.pattern(cell) for cell in core)


def test_graph_breaks_survive_the_json() -> None:
    one = made().generated
    assert one is not None
    broken = msgspec.structs.replace(one, graph_breaks=[GraphBreak("a branch", "model.py:3")])
    assert msgspec.json.decode(msgspec.json.encode(broken), type=Generated) == broken
