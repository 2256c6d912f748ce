"""Rules for two documents about models.

- 002: modes of torch.compile for inference of vision transformers
- 003: torch.compile for a stochastic neural operator
"""

from __future__ import annotations

from functools import partial

from ... import matrix
from ...modes import EAGER, GRAPH_MODES
from .. import statistics
from ..statistics import Interval
from .evidence import (
    Evidence,
    Finding,
    Rule,
    Rules,
    about,
    above,
    all_of,
    fewer_launches,
    inference,
    listed,
    some,
    training,
    within,
)

RULES = Rules()
SMALL, MEDIUM, LARGE = "vit16x6x384", "vit32x12x768", "vit32x18x1024"
OPERATOR = "operator_stochastic"


def _mode_over(evidence: Evidence, workload: str, mode: str, other: str) -> Interval:
    """Time in a mode over the time in another one.

    Both were paired with the same eager call, so the drift between them cancels. But a graph that
    CUDA replays waits for the device and not for the host, whose speed changes. Of two modes with
    such graphs the times themselves are compared, without a drift: eager's would be the host's.
    """
    graphs = evidence.device == "cuda" and {mode, other}.issubset(GRAPH_MODES)
    measure = evidence.latency if graphs else evidence.ratio
    return statistics.quotient(
        measure(inference(workload, mode)), measure(inference(workload, other))
    )


def _reduce_overhead(workload: str, fraction: float) -> Rule:
    """The fraction of default's time, and at most a tenth of its kernel launches."""

    def rule(evidence: Evidence) -> Finding:
        part = _mode_over(evidence, workload, "reduce-overhead", "default")
        launches = []
        for mode in ("default", "reduce-overhead"):
            profile = evidence.profile(inference(workload, mode))
            launches.append(profile.kernel_launches / profile.calls)
        return Finding(
            all_of(about(part, fraction), launches[0] >= 10 * launches[1]),
            f"{part} of default's time; kernel launches a call {launches[0]:.0f} to "
            f"{launches[1]:.0f}",
            interval=part,
        )

    return rule


RULES["vit-small-reduce-overhead-36-percent"] = _reduce_overhead(SMALL, 0.64)
RULES["vit-medium-reduce-overhead-34-percent"] = _reduce_overhead(MEDIUM, 0.66)


RULES["vit-small-71x-fewer-launches"] = partial(fewer_launches, workload=SMALL, times=27500 / 387)
RULES["vit-medium-122x-fewer-launches"] = partial(
    fewer_launches, workload=MEDIUM, times=53000 / 435
)


@RULES("vit-large-no-benefit")
def _vit_large(evidence: Evidence) -> Finding:
    """No benefit: not more than 3 % less time."""
    part = _mode_over(evidence, LARGE, "reduce-overhead", "default")
    return Finding(_no_benefit(part), f"{part} of default's time", interval=part)


def _no_benefit(ratio: Interval) -> bool | None:
    """Whether a ratio is a gain of at most 3 %. Open for a larger loss than the documents have."""
    holds = above(ratio, 0.97)
    return None if holds and ratio.high > 1.03 else holds


@RULES("default-mode-minimal")
def _default_minimal(evidence: Evidence) -> Finding:
    """No benefit: for none of the models more than 3 % less time than eager's."""
    models = map(inference, (SMALL, MEDIUM, LARGE))
    cells = evidence.having(models, "none of the document's models was measured")
    ratios = {cell.workload: evidence.ratio(cell) for cell in cells}
    return Finding(
        all_of(*map(_no_benefit, ratios.values())),
        f"of eager's time: {listed(ratios)}",
        interval=statistics.geometric_mean(list(ratios.values())),
    )


@RULES("max-autotune-equals-reduce-overhead")
def _autotune_equals(evidence: Evidence) -> Finding:
    both = ("max-autotune", "reduce-overhead")
    names = some(
        (
            name
            for name in (SMALL, MEDIUM, LARGE)
            if all(evidence.has(inference(name, mode)) for mode in both)
        ),
        "none of the document's models was measured in both modes",
    )
    part = statistics.geometric_mean([_mode_over(evidence, name, *both) for name in names])
    return Finding(within(part, 0.95, 1.05, slack=0), f"{part} of its time", interval=part)


@RULES("warm-up-grows-with-mode")
def _warm_up(evidence: Evidence) -> Finding:
    """Default is steady after at most 300 calls, the other modes after 1000 or more."""
    calls, steady = {}, True
    for mode in matrix.COMPILED:
        launches = statistics.undisturbed(evidence.measured(inference(SMALL, mode)).launches)
        calls[mode] = max(statistics.calls_until_steady_of(launch) for launch in launches)
        steady &= all(map(statistics.stayed_steady, launches))
    others = all(count >= 1000 for mode, count in calls.items() if mode != "default")
    return Finding(
        (calls["default"] <= 300 and others) if steady else None,
        f"calls until steady: {listed(calls)}",
        ours=float(calls["default"]),
        opened="a launch was not steady at the end of its warm-up, or was faster later",
    )


@RULES("advanced-modes-compile-30-60s")
def _advanced_modes(evidence: Evidence) -> Finding:
    default = evidence.cold_compile(inference(SMALL))
    more = {
        mode: _longer(evidence.cold_compile(inference(SMALL, mode)), default, evidence.drift)
        for mode in matrix.COMPILED
        if mode != "default"
    }
    return Finding(
        all_of(*(within(seconds, 30, 60) for seconds in more.values())),
        f"{SMALL}, seconds more than default: {listed(more, '+.1f')} (one launch each)",
        ours=max(seconds.value for seconds in more.values()),
    )


def _longer(one: Interval, other: Interval, drift: float) -> Interval:
    """By how many seconds one is longer. ``drift``: half-width of the log of times of two runs."""
    one, other = (statistics.widened(each, drift) for each in (one, other))
    return Interval(one.value - other.value, one.low - other.high, one.high - other.low)


@RULES("stochastic-operator-1.09x")
def _operator(evidence: Evidence) -> Finding:
    """Within 5 %: the usual 15 % is more than the claimed gain."""
    speedup = evidence.speedup(inference(OPERATOR, "max-autotune", 5))
    return Finding(
        within(speedup, 1.04, 1.14, slack=0), f"{speedup} times as fast", interval=speedup
    )


@RULES("randomness-breaks-the-graph")
def _randomness(evidence: Evidence) -> Finding:
    compiled = evidence.compiled(inference(OPERATOR))
    breaks = len(compiled.graph_breaks)
    return Finding(
        breaks > 0,
        f"graph breaks: {breaks}, graphs: "
        f"{'not counted' if compiled.graphs is None else compiled.graphs}",
        ours=float(breaks),
    )


@RULES("operator-compile-15-18s")
def _operator_compile(evidence: Evidence) -> Finding:
    cost_s = evidence.cold_compile(inference(OPERATOR, "max-autotune", 5))
    return Finding(
        within(cost_s, 15, 18),
        f"{cost_s.value:.1f} s without a cache (one launch)",
        ours=cost_s.value,
        opened="cold compiles of one cell differ by as much",
    )


@RULES("bf16-beats-compile")
def _bf16(evidence: Evidence) -> Finding:
    """All at the document's batch size, 5, and a larger one against it. The document names no
    larger one: another than 8 may gain as much.
    """
    bf16 = evidence.speedup(matrix.PRECISION.cell(OPERATOR, 5, EAGER))
    parts, said = [about(bf16, 2.0)], [f"bfloat16 {bf16}"]
    eager = evidence.latency(inference(OPERATOR, "max-autotune", 5), eager=True)
    larger, norm = inference(OPERATOR, batch_size=8), inference("operator_groupnorm", batch_size=5)
    for what, factor, cell in (("a sample at batch 8", 1.5, larger), ("GroupNorm", 1.2, norm)):
        if not evidence.has(cell):
            parts.append(None)
            said.append(f"{what} not measured")
            continue
        other = evidence.latency(cell, eager=True).per(cell.batch_size)
        gain = evidence.over(eager.per(5), other)
        holds = about(gain, factor)
        parts.append(None if cell is larger and not holds else holds)
        said.append(f"{what} {gain}")
    return Finding(
        all_of(*parts),
        f"times as fast at batch 5: {', '.join(said)}",
        interval=bf16,
        opened="an interval does not decide, or a part was not measured",
    )


@RULES("depth-helps-fusion")
def _depth(evidence: Evidence) -> Finding:
    shallow = evidence.speedup(inference(OPERATOR))
    deep = statistics.quotient(evidence.speedup(inference("operator_12_layers")), shallow)
    step = training(OPERATOR)
    # A small batch gains more, so only the same batch says what training adds.
    same = inference(OPERATOR, batch_size=step.batch_size)
    if evidence.has(same):
        trained = statistics.quotient(evidence.speedup(step), evidence.speedup(same))
        adds, says = above(trained, 1.0), str(trained)
    else:
        adds, says = None, f"not measured at batch {step.batch_size}"
    return Finding(
        all_of(above(deep, 1.0), adds),
        f"gain of 12 layers over that of 4: {deep}, of training over inference: {says}",
        interval=deep,
        opened="an interval does not decide, or a part was not measured",
    )
