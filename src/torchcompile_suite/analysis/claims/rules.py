"""What documents claim about torch.compile, and what this machine's records say to it.

``claims.toml`` holds the claims; here stands beside each the rule that its verdict follows from, on
recorded results only. A rule returns its figures and a verdict; what was not measured, or cannot be
here, ends it with a reason. Where a claim has several parts, one that is false contradicts it.

"About X" means within 15 % of X, unless the claim gives a range itself.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from ... import matrix, workloads
from ...cell import ARTEFACTS, Cell, Compiled, Measurement, Status
from ...modes import EAGER
from .. import change, statistics
from ..statistics import Interval

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("claims.toml")
ABOUT = 0.15


class Verdict(str, Enum):
    """What the records say to a claim."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    NOT_MEASURABLE = "not-measurable"


class Claim(msgspec.Struct):
    """A claim as its document makes it; ``needs`` is "any" device or "cuda"."""

    id: str
    seed: str
    says: str
    needs: str


class Judged(NamedTuple):
    """A claim with its verdict: our figure, its 95 % interval where there is one, and why."""

    claim: Claim
    verdict: Verdict
    ours: float | None
    interval: Interval | None
    reason: str


class Missing(Exception):
    """The records cannot tell; the message says what is missing."""


class _Found(NamedTuple):
    """What a rule found: whether the claim holds (None: the interval does not decide)."""

    holds: bool | None
    said: str
    ours: float | None = None
    interval: Interval | None = None


def read() -> list[Claim]:
    """All claims, in the order of their documents."""
    return msgspec.convert(tomllib.loads(FILE.read_text())["claim"], list[Claim])


class Evidence:
    """One release's measurements on one machine, asked by cell."""

    def __init__(self, measurements: Iterable[Measurement], device: str) -> None:
        """Take measurements of one machine and release; of a cell measured twice the last."""
        self._found = {each.cell: each for each in measurements}
        self.device = device

    def measured(self, cell: Cell) -> Measurement:
        """The cell's measurement; raises Missing, with its outcome, where there are no numbers."""
        cell = msgspec.structs.replace(cell, device=self.device)
        found = self._found.get(cell)
        if found is None:
            raise Missing(f"not measured: {cell}")
        if not found.outcome.ok:
            raise Missing(f"{cell}: {found.outcome.status.value}: {found.outcome.reason}")
        return found

    def wrong(self, cell: Cell) -> str:
        """How the compiled output was wrong; empty where it was not, or was not measured."""
        found = self._found.get(msgspec.structs.replace(cell, device=self.device))
        wrong = found is not None and found.outcome.status is Status.WRONG_RESULT
        return found.outcome.reason if found is not None and wrong else ""

    def has(self, cell: Cell) -> bool:
        """Whether the cell has numbers."""
        try:
            self.measured(cell)
        except Missing:
            return False
        return True

    def ratio(self, cell: Cell) -> Interval:
        """Time in the mode over the baseline's."""
        found = self.measured(cell)
        return statistics.measured_ratio(found.launches, found.sequential)

    def speedup(self, cell: Cell) -> Interval:
        """Its inverse: how many times as fast."""
        return statistics.inverse(self.ratio(cell))

    def against(self, one: Interval, other: Interval) -> Interval:
        """The quotient of two times taken at different moments, between which the machine's mood
        may have changed (`change.mood_between`); raises Missing where that is unknown.
        """
        variance, _ = change.drift_between([change.Side("", self._found.values())])
        if math.isnan(variance):
            raise Missing("no eager time was measured twice, so the machine's mood is unknown")
        return statistics.quotient(one, other, more=1.96 * math.sqrt(2 * variance))

    def latency(self, cell: Cell, eager: bool = False) -> Interval:
        """Seconds a call in the mode, or in the baseline it was paired with."""
        of = statistics.launch_eager_latency if eager else statistics.launch_latency
        launches = statistics.counted(self.measured(cell).launches)
        return statistics.geometric_interval([of(launch.pairs_s) for launch in launches])

    def compiled(self, cell: Cell) -> Compiled:
        """What the compiler saw and made of it."""
        found = self.measured(cell).compiled
        if found is None:
            raise Missing(f"the record of {cell} does not say what was compiled")
        return found

    def field(self, cell: Cell, name: str) -> int:
        """A count out of it."""
        compiled = self.compiled(cell)
        value = compiled.value(name)
        if value is None:
            raise Missing(f"{cell}: {name}: {compiled.unknown.get(name, 'unknown')}")
        return int(value)

    def warm_compile(self, cell: Cell) -> Interval:
        """Seconds lost to compiling with Inductor's cache filled."""
        costs = statistics.compile_costs(self.measured(cell).launches, "warm")
        if len(costs) < 2:
            raise Missing(f"fewer than two warm launches of {cell}")
        return statistics.geometric_interval(costs)

    def cold_compile(self, cell: Cell) -> float:
        """Seconds lost to compiling at the cold start; one launch, hence no interval."""
        costs = statistics.compile_costs(self.measured(cell).launches, "cold")
        if not costs:
            raise Missing(f"no cold launch of {cell}")
        return costs[0]


def within(interval: Interval, low: float, high: float) -> bool | None:
    """Whether a figure lies in a range: no if none of its interval does; yes if it does itself and
    its interval reaches no farther beyond the range than 15 %; else None, it does not decide.
    """
    if interval.high < low or interval.low > high:
        return False
    near = interval.low >= low * (1 - ABOUT) and interval.high <= high * (1 + ABOUT)
    return True if near and low <= interval.value <= high else None


def about(interval: Interval, figure: float) -> bool | None:
    """`within` 15 % of a figure."""
    return within(interval, figure * (1 - ABOUT), figure * (1 + ABOUT))


def above(interval: Interval, limit: float) -> bool | None:
    """Whether a figure lies surely above a limit, surely not, or None."""
    if interval.low > limit:
        return True
    return False if interval.high < limit else None


def both(*parts: bool | None) -> bool | None:
    """All parts hold; one that does not decides, else one that is open leaves it open."""
    if False in parts:
        return False
    return None if None in parts else True


def _text(interval: Interval) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _plain(workload: str, mode: str = "default", batch_size: int = 1) -> Cell:
    return Cell(workload, batch_size, mode)


def _training(workload: str, dtype: str = "float32", accumulation: int = 1) -> Cell:
    return matrix.TRAINING.cell(workload, "default", dtype, accumulation)


Rule = Callable[[Evidence], _Found]
RULES: dict[str, Rule] = {}


def _rule(name: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES[name] = rule
        return rule

    return register


def judge(measurements: Iterable[Measurement], device: str = "cpu") -> list[Judged]:
    """Every claim's verdict by the measurements of one release on one machine."""
    evidence = Evidence(measurements, device)
    return [_judge(claim, evidence) for claim in read()]


def _judge(claim: Claim, evidence: Evidence) -> Judged:
    if claim.needs == "cuda" and evidence.device != "cuda":
        return Judged(
            claim, Verdict.NOT_MEASURABLE, None, None, "needs a CUDA device; this machine has none"
        )
    try:
        found = RULES[claim.id](evidence)
    except Missing as missing:
        return Judged(claim, Verdict.NOT_MEASURABLE, None, None, str(missing))
    if found.holds is None:
        verdict, said = Verdict.NOT_MEASURABLE, f"the interval does not decide: {found.said}"
    else:
        verdict = Verdict.CONFIRMED if found.holds else Verdict.CONTRADICTED
        said = found.said
    interval = found.interval
    ours = found.ours if interval is None else interval.value
    return Judged(claim, verdict, ours, interval, said)


def _cohort(evidence: Evidence, family: str, mode: str = "default") -> list[Cell]:
    """The family's cells at batch 1 that have numbers; Missing where there are none."""
    cells = [
        cell
        for name in workloads.names()
        if workloads.get(name).family == family and evidence.has(cell := _plain(name, mode))
    ]
    if not cells:
        raise Missing(f"no {family} workload was measured in mode {mode}")
    return cells


# -- 000: eval-mode inference ------------------------------------------------------------------


def _image_models(evidence: Evidence, figure: float) -> _Found:
    cells = _cohort(evidence, "timm")
    speedup = statistics.geometric_mean([evidence.speedup(cell) for cell in cells])
    said = f"{_text(speedup)} times as fast, geometric mean of {len(cells)} timm models at batch 1"
    return _Found(about(speedup, figure), said, interval=speedup)


@_rule("cpu-inference-1.5x")
def _cpu_inference(evidence: Evidence) -> _Found:
    if evidence.device != "cpu":
        raise Missing("this machine's results are a GPU's")
    return _image_models(evidence, 1.5)


@_rule("consumer-gpu-1.3x")
def _consumer_gpu(evidence: Evidence) -> _Found:
    return _image_models(evidence, 1.3)


@_rule("first-calls-are-slower")
def _first_calls(evidence: Evidence) -> _Found:
    """In every default cell: the first call takes longer than eager's, whatever comes later."""
    cells = [cell for name in workloads.names() if evidence.has(cell := _plain(name))]
    if not cells:
        raise Missing("no inference cell was measured in mode default")
    times = [
        evidence.measured(cell).launches[0].warm_up_s[0] / evidence.latency(cell, eager=True).value
        for cell in cells
    ]
    least = min(times)
    return _Found(
        least > 1,
        f"the first call takes {least:,.0f} to {max(times):,.0f} times as long as eager's, "
        f"in {len(cells)} cells",
        ours=least,
    )


@_rule("naive-timing-misleads")
def _naive_timing(evidence: Evidence) -> _Found:
    """One model that gains, and that one of the mistakes shows as slower."""
    gaining = [
        name
        for name in workloads.tagged("protocol")
        if evidence.has(_plain(name)) and above(evidence.speedup(_plain(name)), 1.0)
    ]
    if not gaining:
        raise Missing("no workload of the protocol question gains from compiling here")
    worst, who, how = 0.0, gaining[0], ""
    for name in gaining:
        cold = evidence.measured(_plain(name)).launches[0]
        naive = {matrix.WARM_UP_MIXED: statistics.warm_up_mixed_ratio(cold)}
        for protocol in matrix.PROTOCOLS[2:]:
            cell = matrix.PROTOCOL.cell(name, protocol)
            if evidence.has(cell):
                naive[protocol] = evidence.ratio(cell).value
        for protocol, ratio in naive.items():
            if ratio > worst:
                worst, who, how = ratio, name, protocol
    right = _text(evidence.ratio(_plain(who)))
    return _Found(
        worst > 1,
        f"{who}: {worst:,.2f} of eager's time with {how}, rightly {right}",
        ours=worst,
    )


@_rule("eval-and-no-grad-matter")
def _grad_matters(evidence: Evidence) -> _Found:
    """Without both more is captured, and compiling costs more even with a filled cache."""
    name = "resnet18"
    right, wrong = _plain(name), matrix.PROTOCOL.cell(name, "train-mode")
    operators = [evidence.field(cell, "operators") for cell in (right, wrong)]
    dearer = evidence.against(evidence.warm_compile(wrong), evidence.warm_compile(right))
    cold = [evidence.cold_compile(cell) for cell in (right, wrong)]
    return _Found(
        both(operators[1] > operators[0], above(dearer, 1.0)),
        f"{name}: {operators[0]} captured operators become {operators[1]}, warm compile costs "
        f"{_text(dearer)} times as much (cold, one launch each: {cold[0]:.0f} and {cold[1]:.0f} s)",
        interval=dearer,
    )


# -- 001: how it works -------------------------------------------------------------------------


@_rule("tiny-function-is-slower-compiled")
def _tiny_function(evidence: Evidence) -> _Found:
    ratio = evidence.ratio(_plain("softmax_matmul"))
    first_s = evidence.measured(_plain("softmax_matmul")).launches[0].warm_up_s[0]
    return _Found(
        above(ratio, 1.0),
        f"{_text(ratio)} of eager's time; the first call took {first_s:.1f} s",
        interval=ratio,
    )


@_rule("softmax-fuses-to-one-kernel")
def _softmax_kernels(evidence: Evidence) -> _Found:
    kernels = evidence.field(_plain("softmax_matmul"), "kernels")
    nodes = evidence.field(_plain("softmax_matmul"), "nodes_before")
    return _Found(
        kernels == 1,
        f"{kernels} generated kernel for {nodes - 1} operations beside the product",
        ours=float(kernels),
    )


@_rule("guards-recapture-on-change")
def _guards(evidence: Evidence) -> _Found:
    compiled = evidence.compiled(_plain("softmax_matmul"))
    counts = compiled.recaptures
    if not counts:
        raise Missing("no recaptures were recorded")
    said = ", ".join(f"{change} {count}" for change, count in counts.items())
    if "device" not in counts:
        said += "; device: " + compiled.unknown.get("recaptures.device", "not tried")
    return _Found(
        all(count == (change != "repeat") for change, count in counts.items()),
        f"captures after a change: {said}",
        ours=float(sum(counts.values())),
    )


@_rule("data-dependent-flow-breaks-the-graph")
def _data_dependent(evidence: Evidence) -> _Found:
    """Right on both branches: a compiled module that is not has the outcome wrong-result."""
    cell = _plain("branch_on_value")
    if wrong := evidence.wrong(cell):
        return _Found(False, wrong)
    compiled = evidence.compiled(cell)
    if not compiled.tracing:
        raise Missing("no other way of capture was tried")
    breaks = compiled.graph_breaks
    traced = "; ".join(f"{way}: {what}" for way, what in compiled.tracing.items())
    where = f" at {breaks[0].where}" if breaks else ""
    return _Found(
        bool(breaks) and "right" not in compiled.tracing.values(),
        f"{len(breaks)} graph break{where}, right on both branches; {traced}",
        ours=float(len(breaks)),
    )


@_rule("compiler-artefacts")
def _artefacts(evidence: Evidence) -> _Found:
    kinds = evidence.compiled(_plain("softmax_matmul")).artefacts
    if not kinds:
        raise Missing("the record does not say what could be opened")
    lacking = sorted(set(ARTEFACTS) - set(kinds))
    said = f"lacking: {', '.join(lacking)}" if lacking else f"all there: {', '.join(kinds)}"
    return _Found(not lacking, said, ours=float(len(kinds)))


# -- 002: vision transformers ------------------------------------------------------------------


def _reduce_overhead(workload: str, fraction: float) -> Rule:
    """Time with reduce-overhead over default's, and at least ten times fewer launches."""

    def rule(evidence: Evidence) -> _Found:
        cells = [_plain(workload, mode) for mode in ("reduce-overhead", "default")]
        # Both were paired with the same eager call, so the machine's mood cancels.
        part = statistics.quotient(*(evidence.ratio(cell) for cell in cells))
        launches = []
        for cell in cells:
            profile = evidence.compiled(cell).profile
            if profile is None:
                raise Missing(f"no time line of {cell}")
            launches.append(profile.kernel_launches / profile.calls)
        return _Found(
            both(about(part, fraction), launches[1] >= 10 * launches[0]),
            f"{_text(part)} of default's time; launches a call {launches[1]:.0f} to "
            f"{launches[0]:.0f}",
            interval=part,
        )

    return rule


RULES["vit-small-reduce-overhead-36-percent"] = _reduce_overhead("vit16x6x384", 0.64)
RULES["vit-medium-reduce-overhead-34-percent"] = _reduce_overhead("vit32x12x768", 0.66)


@_rule("vit-large-no-benefit")
def _vit_large(evidence: Evidence) -> _Found:
    part = statistics.quotient(
        *(evidence.ratio(_plain("vit32x18x1024", mode)) for mode in ("reduce-overhead", "default"))
    )
    return _Found(within(part, 0.97, 1.03), f"{_text(part)} of default's time", interval=part)


@_rule("default-mode-minimal")
def _default_minimal(evidence: Evidence) -> _Found:
    """Nothing means within 3 % of eager, as its own "1 to 2 % slower" suggests."""
    cells = _cohort(evidence, "vit")
    ratio = statistics.geometric_mean([evidence.ratio(cell) for cell in cells])
    return _Found(
        within(ratio, 0.97, 1.03),
        f"{_text(ratio)} of eager's time, mean of {', '.join(cell.workload for cell in cells)}",
        interval=ratio,
    )


@_rule("max-autotune-equals-reduce-overhead")
def _autotune_equals(evidence: Evidence) -> _Found:
    parts = [
        statistics.quotient(
            evidence.ratio(_plain(cell.workload, "max-autotune")),
            evidence.ratio(_plain(cell.workload, "reduce-overhead")),
        )
        for cell in _cohort(evidence, "vit", "max-autotune")
    ]
    part = statistics.geometric_mean(parts)
    return _Found(within(part, 0.95, 1.05), f"{_text(part)} of its time", interval=part)


@_rule("warm-up-grows-with-mode")
def _warm_up(evidence: Evidence) -> _Found:
    """Default needs no more than 300 calls, the others a thousand; one settled earlier did not."""
    calls, steady = {}, True
    for mode in matrix.COMPILED:
        launches = evidence.measured(_plain("vit16x6x384", mode)).launches
        calls[mode] = max(statistics.calls_until_steady(each.warm_up_s) for each in launches)
        steady &= all(each.steady for each in launches)
    others = all(count >= 1000 for mode, count in calls.items() if mode != "default")
    return _Found(
        (calls["default"] <= 300 and others) if steady else None,
        "calls until steady: "
        + ", ".join(f"{mode} {count}" for mode, count in calls.items())
        + ("" if steady else "; some launch was not steady at the warm-up's limit"),
        ours=float(calls["default"]),
    )


@_rule("advanced-modes-compile-30-60s")
def _advanced_modes(evidence: Evidence) -> _Found:
    more = {
        mode: evidence.cold_compile(_plain("vit16x6x384", mode))
        - evidence.cold_compile(_plain("vit16x6x384"))
        for mode in matrix.COMPILED
        if mode != "default"
    }
    return _Found(
        all(30 <= seconds <= 60 for seconds in more.values()),
        "vit16x6x384, seconds more than default: "
        + ", ".join(f"{mode} {seconds:+.1f}" for mode, seconds in more.items())
        + " (one launch each)",
        ours=max(more.values()),
    )


# -- 003: neural operators ---------------------------------------------------------------------

OPERATOR = "operator_stochastic"


@_rule("stochastic-operator-1.09x")
def _operator(evidence: Evidence) -> _Found:
    """The gain is less than the claim's tolerance elsewhere, so it is held to 5 %."""
    speedup = evidence.speedup(_plain(OPERATOR, "max-autotune", 5))
    return _Found(within(speedup, 1.04, 1.14), f"{_text(speedup)} times as fast", interval=speedup)


@_rule("randomness-breaks-the-graph")
def _randomness(evidence: Evidence) -> _Found:
    compiled = evidence.compiled(_plain(OPERATOR))
    breaks = len(compiled.graph_breaks)
    return _Found(breaks > 0, f"{breaks} graph breaks, {compiled.graphs} graph", ours=float(breaks))


@_rule("operator-compile-15-18s")
def _operator_compile(evidence: Evidence) -> _Found:
    cost_s = evidence.cold_compile(_plain(OPERATOR, "max-autotune", 5))
    return _Found(15 <= cost_s <= 18, f"{cost_s:.1f} s, nothing cached (one launch)", ours=cost_s)


@_rule("bf16-beats-compile")
def _bf16(evidence: Evidence) -> _Found:
    bf16 = evidence.speedup(matrix.PRECISION.cell(OPERATOR, 1, EAGER))
    one = evidence.latency(_plain(OPERATOR), eager=True)
    five = evidence.latency(_plain(OPERATOR, "max-autotune", 5), eager=True)
    batch = evidence.against(one, Interval(*(value / 5 for value in five)))
    norm = evidence.against(one, evidence.latency(_plain("operator_groupnorm"), eager=True))
    return _Found(
        both(about(bf16, 2.0), about(batch, 1.5), about(norm, 1.2)),
        f"times as fast: bfloat16 {_text(bf16)} at batch 1, a sample at batch 5 against batch 1 "
        f"{_text(batch)}, GroupNorm {_text(norm)}",
        interval=bf16,
    )


@_rule("depth-helps-fusion")
def _depth(evidence: Evidence) -> _Found:
    deep = statistics.quotient(
        evidence.speedup(_plain("operator_12_layers")), evidence.speedup(_plain(OPERATOR))
    )
    training = statistics.quotient(
        evidence.speedup(_training(OPERATOR)), evidence.speedup(_plain(OPERATOR))
    )
    return _Found(
        both(above(deep, 1.0), above(training, 1.0)),
        f"gain of 12 layers over that of 4: {_text(deep)}, of training over inference: "
        f"{_text(training)}",
        interval=deep,
    )


# -- 004: modes, fusion, shapes, training ------------------------------------------------------


@_rule("mode-trade-offs")
def _modes(evidence: Evidence) -> _Found:
    """Each mode's mean gain over one cohort, and its median cold compile, lie in their ranges."""
    ranges = {
        "default": ((1.3, 1.8), (10, 30)),
        "reduce-overhead": ((2, 3), (30, 120)),
        "max-autotune": ((1.8, 2.5), (300, 3600)),
    }
    cohort = [
        name
        for name in workloads.names()
        if all(evidence.has(_plain(name, mode)) for mode in ranges)
    ]
    if not cohort:
        raise Missing("no workload was measured in all three modes")
    parts, said, gains = [], [], {}
    for mode, (times, seconds) in ranges.items():
        cells = [_plain(name, mode) for name in cohort]
        gains[mode] = statistics.geometric_mean([evidence.speedup(cell) for cell in cells])
        cost_s = median(evidence.cold_compile(cell) for cell in cells)
        parts += [within(gains[mode], *times), seconds[0] <= cost_s <= seconds[1]]
        said.append(f"{mode} {_text(gains[mode])} times for {cost_s:.0f} s")
    return _Found(
        both(*parts),
        f"{', '.join(said)}; mean of {', '.join(cohort)}",
        interval=gains["default"],
    )


@_rule("cuda-graphs-launch-100x")
def _cuda_graphs(evidence: Evidence) -> _Found:
    """What the host starts, and how long the device waits for it, both fall a hundredfold."""
    waits, launches = [], []
    for mode in ("default", "reduce-overhead"):
        profile = evidence.compiled(_plain("gpt_decode", mode)).profile
        if profile is None:
            raise Missing(f"no time line of gpt_decode in mode {mode}")
        waits.append(profile.idle_s / profile.calls)
        launches.append(profile.kernel_launches / profile.calls)
    return _Found(
        waits[0] >= 100 * (1 - ABOUT) * waits[1],
        f"gpt_decode: {launches[0]:.0f} launches a call become {launches[1]:.0f}, the device waits "
        f"{waits[0] * 1e6:.0f} us a call and then {waits[1] * 1e6:.0f}",
        ours=waits[0] / waits[1] if waits[1] else None,
    )


@_rule("entropy-fusion-3x-traffic")
def _entropy(evidence: Evidence) -> _Found:
    cell = _plain("entropy_in_memory")
    traffic = evidence.field(cell, "eager_bytes") / evidence.field(cell, "bytes_after")
    kernels = evidence.field(cell, "kernels")
    speedup = evidence.speedup(cell)
    # The document counts three operators; here they are five, so that more can be saved.
    return _Found(
        both(kernels == 1, traffic >= 3 * (1 - ABOUT), about(speedup, 2.75)),
        f"{kernels} kernel, {traffic:.1f} times less traffic, {_text(speedup)} times as fast",
        interval=speedup,
    )


@_rule("relevance-scorers-2.75x")
def _scorers(evidence: Evidence) -> _Found:
    compiled = statistics.geometric_mean(
        [evidence.speedup(cell) for cell in _cohort(evidence, "relevance")]
    )
    overhead = statistics.geometric_mean(
        [evidence.speedup(cell) for cell in _cohort(evidence, "relevance", "reduce-overhead")]
    )
    cell = _training("relevance_information", "bfloat16")
    # Compiled in bfloat16 against eager in float32, as the document counts it.
    eager = evidence.latency(_training("relevance_information"), eager=True)
    training = evidence.against(eager, evidence.latency(cell))
    return _Found(
        both(about(compiled, 2.75), about(overhead, 6.0), about(training, 3.0)),
        f"times as fast: default {_text(compiled)}, reduce-overhead {_text(overhead)}, training "
        f"compiled in bfloat16 {_text(training)}",
        interval=compiled,
    )


@_rule("small-batches-gain-most")
def _small_batches(evidence: Evidence) -> _Found:
    found = {}
    for name in workloads.tagged("batch8"):
        cells = _plain(name), _plain(name, batch_size=8)
        if all(map(evidence.has, cells)):
            found[name] = statistics.quotient(*map(evidence.speedup, cells))
    if not found:
        raise Missing("no workload was measured at batch 1 and at batch 8")
    ratio = statistics.geometric_mean(list(found.values()))
    said = ", ".join(f"{name} {_text(each)}" for name, each in found.items())
    return _Found(
        both(*(above(each, 1.0) for each in found.values())),
        f"gain at batch 1 over that at batch 8: {said}",
        interval=ratio,
    )


@_rule("dynamic-shapes-need-a-strategy")
def _shapes(evidence: Evidence) -> _Found:
    cells = {
        policy: matrix.DYNAMIC_SHAPES.cell("gpt_prefill", policy)
        for policy in ("recompile", "dynamic", "buckets")
    }
    graphs = {policy: evidence.field(cell, "graphs") for policy, cell in cells.items()}
    slower = statistics.quotient(
        evidence.ratio(cells["dynamic"]), evidence.ratio(cells["recompile"])
    )
    return _Found(
        both(
            graphs["recompile"] > graphs["buckets"] > 0,
            graphs["dynamic"] == 1,
            above(slower, 1.0),
        ),
        "graphs for the stream: "
        + ", ".join(f"{policy} {count}" for policy, count in graphs.items())
        + f"; dynamic runs at {_text(slower)} of the static time",
        interval=slower,
    )


@_rule("backends-locate-the-gain")
def _backends(evidence: Evidence) -> _Found:
    """Some workload's gain appears with one backend and not with the one before it."""
    said, located = [], []
    for name in workloads.tagged("backends"):
        ratios = {
            backend: evidence.ratio(cell)
            for backend in matrix.BACKENDS
            if evidence.has(cell := matrix.BACKEND.cell(name, backend))
        }
        if not {"eager", "aot_eager", "inductor"} <= set(ratios):
            continue
        said.append(
            f"{name}: " + ", ".join(f"{key} {value.value:.2f}" for key, value in ratios.items())
        )
        located.append(above(statistics.quotient(ratios["aot_eager"], ratios["inductor"]), 1.0))
    if not located:
        raise Missing("no workload was measured with the backends eager, aot_eager and inductor")
    holds = True if True in located else None if None in located else False
    return _Found(holds, "of eager's time: " + "; ".join(said))


@_rule("training-1.4-2.5x")
def _training_gain(evidence: Evidence) -> _Found:
    cells = [
        cell
        for point in matrix.TRAINING.points
        if point[1] == "default" and evidence.has(cell := matrix.TRAINING.cell(*point))
    ]
    if not cells:
        raise Missing("no training cell was measured in mode default")
    gain = statistics.geometric_mean([evidence.speedup(cell) for cell in cells])
    each = [evidence.speedup(cell).value for cell in cells]
    return _Found(
        within(gain, 1.4, 2.5),
        f"{_text(gain)} times as fast, mean of {len(cells)} training cells "
        f"({min(each):.2f} to {max(each):.2f})",
        interval=gain,
    )
