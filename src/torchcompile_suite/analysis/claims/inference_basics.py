"""Rules for document 000: why torch.compile can look slower, and when it helps."""

from __future__ import annotations

from ... import matrix, workloads
from .. import statistics
from .evidence import Evidence, Finding, Missing, Rules, about, above, all_of, inference, some

RULES = Rules()


def _image_models(evidence: Evidence, figure: float) -> Finding:
    cells = evidence.family("timm")
    speedup = evidence.mean_speedup(cells)
    reason = f"{speedup} times as fast, geometric mean of {len(cells)} timm models at batch 1"
    return Finding(about(speedup, figure), reason, interval=speedup)


@RULES("cpu-inference-1.5x")
def _cpu_inference(evidence: Evidence) -> Finding:
    if evidence.device != "cpu":
        raise Missing("these are results of a GPU")
    return _image_models(evidence, 1.5)


@RULES("consumer-gpu-1.3x")
def _consumer_gpu(evidence: Evidence) -> Finding:
    return _image_models(evidence, 1.3)


@RULES("first-calls-are-slower")
def _first_calls(evidence: Evidence) -> Finding:
    """The first call takes longer than an eager call in every cell of mode default."""
    cells = evidence.having(
        map(inference, workloads.names()), "no inference cell was measured in mode default"
    )
    times = [
        evidence.first_call_s(cell) / evidence.latency(cell, eager=True).value for cell in cells
    ]
    return Finding(
        min(times) > 1,
        f"the first call takes {min(times):,.0f} to {max(times):,.0f} times as long as eager's, "
        f"in {len(cells)} cells",
        ours=min(times),
    )


@RULES("naive-timing-misleads")
def _naive_timing(evidence: Evidence) -> Finding:
    """At least one model gains, but looks slower when it is timed with one of the mistakes."""
    gaining = (
        name
        for name in workloads.tagged("protocol")
        if evidence.has(inference(name)) and above(evidence.speedup(inference(name)), 1.0)
    )
    missing = "no workload of the protocol question gains from compiling here"
    ratios = {
        (name, protocol): ratio
        for name in some(gaining, missing)
        for protocol, ratio in _mistaken_ratios(evidence, name).items()
    }
    (name, protocol), worst = max(ratios.items(), key=lambda each: each[1])
    return Finding(
        worst > 1,
        f"{name}: {worst:,.2f} of eager's time with {protocol}; correctly timed "
        f"{evidence.ratio(inference(name))}",
        ours=worst,
    )


def _mistaken_ratios(evidence: Evidence, workload: str) -> dict[str, float]:
    """The time ratio with each mistake that was measured."""
    cold = evidence.measured(inference(workload)).launches[0]
    ratios = {matrix.WARM_UP_MIXED: statistics.warm_up_mixed_ratio(cold)}
    for protocol in matrix.PROTOCOLS[2:]:
        cell = matrix.PROTOCOL.cell(workload, protocol)
        if evidence.has(cell):
            ratios[protocol] = evidence.ratio(cell).value
    return ratios


@RULES("eval-and-no-grad-matter")
def _grad_matters(evidence: Evidence) -> Finding:
    """Without eval() and no_grad() more is captured, and a warm compile costs more."""
    name = "resnet18"
    right, wrong = inference(name), matrix.PROTOCOL.cell(name, "train-mode")
    operators = [evidence.count(cell, "operators") for cell in (right, wrong)]
    dearer = evidence.over(evidence.warm_compile(wrong), evidence.warm_compile(right))
    cold = [evidence.cold_compile(cell) for cell in (right, wrong)]
    return Finding(
        all_of(operators[1] > operators[0], above(dearer, 1.0)),
        f"{name}: {operators[0]} captured operators become {operators[1]}; a warm compile costs "
        f"{dearer} times as much (cold, one launch each: {cold[0]:.0f} and {cold[1]:.0f} s)",
        interval=dearer,
    )
