"""Claims: each has a rule, and its verdict follows from the results only."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.analysis import claims
from torchcompile_suite.analysis.claims import Verdict
from torchcompile_suite.analysis.claims.evidence import about, above, all_of, any_of, within
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli import app
from torchcompile_suite.compiled import Compiled, GraphBreak, Profile
from torchcompile_suite.host import machine
from torchcompile_suite.measurement import Measurement, Outcome, Status
from torchcompile_suite.presentation import sheets
from torchcompile_suite.results import records

from . import examples
from .schemas import validated


def measured(cell: Cell, times: float, compiled: Compiled | None = None) -> Measurement:
    """A measurement with a ratio of ``times``, known to about 1 %."""
    launches = [
        examples.launch(kind, mode=0.040 * times * wobble)
        for kind, wobble in (("cold", 1.0), ("warm", 1.003), ("warm", 0.997))
    ]
    if compiled:
        launches[0] = msgspec.structs.replace(launches[0], compiled=compiled)
    return msgspec.structs.replace(examples.measurement(), cell=cell, launches=launches)


def verdicts(*measurements: Measurement, device: str = "cpu") -> dict[str, claims.Judged]:
    return {judged.claim.id: judged for judged in claims.judge(measurements, device)}


def test_launches_that_compile_nothing_decide_nothing() -> None:
    """A stranger's costs may be 0, which has no logarithm."""
    of_nothing = [
        msgspec.structs.replace(
            one,
            launches=[
                msgspec.structs.replace(launch, compiler_import_s=0.0, warm_up_s=[0.1] * 12)
                for launch in one.launches
            ],
        )
        for one in (
            measured(Cell("resnet18", 1, "default"), 0.5),
            measured(Cell("resnet18", 1, "default", protocol="train-mode"), 0.5),
        )
    ]
    assert len(claims.judge(of_nothing)) == len(claims.read())


def test_every_claim_has_a_rule_and_every_rule_a_claim() -> None:
    ids = [claim.id for claim in claims.read()]
    assert sorted(ids) == sorted(claims.RULES)
    assert len(ids) == 36
    # The rules are joined from one table a module: no module may replace the rule of another.
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(claims.__path__, f"{claims.__name__}.")
    ]
    tables = [module.RULES for module in modules if "RULES" in vars(module)]
    assert len(tables) == 3
    assert sum(map(len, tables)) == 36


def test_every_document_is_described_for_readers_who_do_not_have_it() -> None:
    described = claims.read_documents()
    assert [document.id for document in described] == sorted(
        {claim.seed for claim in claims.read()}
    )
    for document in described:
        assert all(len(text) > 10 for text in msgspec.structs.astuple(document))
    table = sheets.documents(claims.judge([]))
    assert [line[0] for line in table.lines] == [document.id for document in described]


def test_nothing_measured_says_what_is_missing() -> None:
    for judged in claims.judge([]):
        assert judged.verdict is Verdict.NOT_MEASURABLE
        assert judged.reason
        assert judged.ours is None


def test_what_needs_a_gpu_says_so_on_a_cpu() -> None:
    for judged in claims.judge([measured(Cell("resnet18", 1, "default"), 0.5)]):
        if judged.claim.needs == "cuda":
            assert judged.verdict is Verdict.NOT_MEASURABLE
            assert "CUDA" in judged.reason


@pytest.mark.parametrize(
    ("times", "verdict"),
    [(1.6, Verdict.CONFIRMED), (0.8, Verdict.CONTRADICTED), (1.0, Verdict.NOT_MEASURABLE)],
)
def test_a_figure_decides_or_leaves_it_open(times: float, verdict: Verdict) -> None:
    found = verdicts(measured(Cell("softmax_matmul", 1, "default"), times))
    judged = found["tiny-function-is-slower-compiled"]
    assert judged.verdict is verdict
    if verdict is Verdict.NOT_MEASURABLE:
        assert "does not decide" in judged.reason
    else:
        assert judged.interval is not None
        assert judged.interval.low < times < judged.interval.high
        assert judged.ours == pytest.approx(times, rel=0.01)


def test_a_failed_cell_is_a_reason_and_not_a_verdict() -> None:
    cell = Cell("softmax_matmul", 1, "default")
    failed = msgspec.structs.replace(
        examples.measurement(outcome=Outcome(Status.COMPILE_ERROR, "no compiler")), cell=cell
    )
    judged = verdicts(failed)["tiny-function-is-slower-compiled"]
    assert judged.verdict is Verdict.NOT_MEASURABLE
    assert "compile-error: no compiler" in judged.reason


def test_a_record_without_compiler_data_decides_nothing_about_the_compiler() -> None:
    judged = verdicts(measured(Cell("softmax_matmul", 1, "default"), 1.6))
    assert "does not say what was compiled" in judged["softmax-fuses-to-one-kernel"].reason


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ({"repeat": 0, "dtype": 1, "size": 1, "device": 1}, Verdict.CONFIRMED),
        # With one kind of device, one of the claim's changes cannot be tried.
        ({"repeat": 0, "dtype": 1, "size": 1}, Verdict.NOT_MEASURABLE),
        ({"repeat": 1, "dtype": 1, "size": 1}, Verdict.CONTRADICTED),
        ({"repeat": 0, "dtype": 0, "size": 1}, Verdict.CONTRADICTED),
    ],
)
def test_guards(counts: dict[str, int], verdict: Verdict) -> None:
    compiled = Compiled(recaptures=counts, unknown={"recaptures.device": "one device"})
    found = verdicts(measured(Cell("softmax_matmul", 1, "default"), 1.6, compiled))
    judged = found["guards-recapture-on-change"]
    assert judged.verdict is verdict
    assert ("one device" in judged.reason) is ("device" not in counts)


def test_randomness_that_breaks_nothing_contradicts() -> None:
    cell = Cell("operator_stochastic", 1, "default")
    whole = verdicts(measured(cell, 1.0, Compiled(graphs=1)))
    assert whole["randomness-breaks-the-graph"].verdict is Verdict.CONTRADICTED
    broken = Compiled(graphs=2, graph_breaks=[GraphBreak("dropout", "x.py:3")])
    found = verdicts(measured(cell, 1.0, broken))
    assert found["randomness-breaks-the-graph"].verdict is Verdict.CONFIRMED


def _gpu(workload: str, mode: str, times: float, launches: int) -> Measurement:
    compiled = Compiled(profile=Profile(10, launches * 10, 500, 0.01, 0.002, 0.0001))
    return measured(Cell(workload, 1, mode, device="cuda"), times, compiled)


def test_the_vit_claims_on_a_gpu() -> None:
    """The records are invented: no GPU has run these claims."""
    found = verdicts(
        _gpu("vit16x6x384", "default", 1.0, 200),
        _gpu("vit16x6x384", "reduce-overhead", 0.64, 2),
        _gpu("vit32x12x768", "default", 1.0, 200),
        _gpu("vit32x12x768", "reduce-overhead", 0.99, 2),
        _gpu("vit32x18x1024", "default", 1.0, 200),
        _gpu("vit32x18x1024", "reduce-overhead", 1.0, 2),
        device="cuda",
    )
    assert found["vit-small-reduce-overhead-36-percent"].verdict is Verdict.CONFIRMED
    assert found["vit-medium-reduce-overhead-34-percent"].verdict is Verdict.CONTRADICTED
    assert found["vit-large-no-benefit"].verdict is Verdict.CONFIRMED
    assert found["default-mode-minimal"].verdict is Verdict.CONFIRMED


def test_of_two_modes_with_cuda_graphs_the_times_are_compared() -> None:
    """Eager is 1.5 times as slow beside one of them: its calls wait for the host, graphs do not."""

    def modes() -> list[Measurement]:
        made = [
            measured(Cell("vit16x6x384", 1, mode, device="cuda"), 0.5)
            for mode in ("max-autotune", "reduce-overhead")
        ]
        slowed = [
            msgspec.structs.replace(
                launch, pairs_s=[(1.5 * eager_s, mode_s) for eager_s, mode_s in launch.pairs_s]
            )
            for launch in made[0].launches
        ]
        return [msgspec.structs.replace(made[0], launches=slowed), made[1]]

    found = verdicts(*modes(), device="cuda")
    assert found["max-autotune-equals-reduce-overhead"].verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("parts", "every", "some"),
    [
        ((True, True), True, True),
        ((True, None), None, True),
        ((True, False), False, True),
        ((None, None), None, None),
        ((None, False), False, None),
        ((False, False), False, False),
        ((True, None, False), False, True),
    ],
)
def test_an_open_part_decides_only_where_no_other_does(
    parts: tuple[bool | None, ...], every: bool | None, some: bool | None
) -> None:
    assert all_of(*parts) is every
    assert all_of(*reversed(parts)) is every
    assert any_of(*parts) is some
    assert any_of(*reversed(parts)) is some


@given(examples.intervals, examples.positive, examples.positive)
def test_yes_needs_the_figure_in_the_range_and_no_the_whole_interval_outside(
    interval: Interval, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    holds = within(interval, low, high)
    if holds is False:
        assert interval.high < low or interval.low > high
    if holds is True:
        assert low <= interval.value <= high


@given(examples.intervals, st.floats(1.2, 5))
def test_a_range_around_the_interval_confirms_and_one_beside_it_contradicts(
    interval: Interval, factor: float
) -> None:
    assert within(interval, interval.low / factor, interval.high * factor) is True
    assert within(interval, interval.high * factor, interval.high * factor**2) is False
    assert within(interval, interval.low / factor**2, interval.low / factor) is False


def test_an_interval_that_leaves_the_range_decides_only_within_15_percent() -> None:
    assert within(Interval(1.5, 1.2, 1.8), 1.3, 1.7) is True
    assert within(Interval(1.5, 1.0, 2.2), 1.3, 1.7) is None
    assert within(Interval(1.25, 1.2, 1.31), 1.3, 1.7) is None
    assert about(Interval(2.0, 1.9, 2.1), 2.0) is True
    assert above(Interval(1.1, 1.05, 1.15), 1.0) is True
    assert above(Interval(1.1, 0.95, 1.25), 1.0) is None
    assert above(Interval(0.9, 0.85, 0.95), 1.0) is False


def test_the_command_prints_all_claims_as_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = records.path(tmp_path / "results" / machine.detect().machine, "a" * 40, "env")
    file.parent.mkdir(parents=True)
    records.append(file, measured(Cell("softmax_matmul", 1, "default"), 1.6))
    done = CliRunner().invoke(app.app, ["claims", "--json"])
    assert done.exit_code == 0, done.output
    found = validated("claims", done.output)
    assert len(found) == 36
    for each in found:
        assert {"id", "seed", "verdict", "ours", "interval", "reason"} <= set(each)
        assert set(each["document"]) == {"id", "kind", "subject", "hardware", "setting"}
        assert each["document"]["id"] == each["seed"]
    table = CliRunner().invoke(app.app, ["claims"])
    assert table.exit_code == 0
    assert "4060" in table.output  # the hardware of a document, which no claim names
    missing = CliRunner().invoke(app.app, ["claims", "--release", "v2.4"])
    assert missing.exit_code == 1
    assert "asv run v2.4.1^!" in missing.output
