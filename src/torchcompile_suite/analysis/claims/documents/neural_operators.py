"""Rules for document 003: torch.compile for a stochastic neural operator."""

from __future__ import annotations

from .... import matrix
from ....modes import EAGER
from ... import statistics
from ..evidence import Evidence
from ..rule import Finding, Rules, about, above, all_of, inference, training, within

RULES = Rules()
OPERATOR = "operator_stochastic"


@RULES("stochastic-operator-1.09x")
def _operator(evidence: Evidence) -> Finding:
    """Within 5 %: the usual 15 % is more than the claimed gain."""
    speedup = evidence.speedup(inference(OPERATOR, "max-autotune", 5))
    return Finding(within(speedup, 1.04, 1.14), f"{speedup} times as fast", interval=speedup)


@RULES("randomness-breaks-the-graph")
def _randomness(evidence: Evidence) -> Finding:
    compiled = evidence.compiled(inference(OPERATOR))
    breaks = len(compiled.graph_breaks)
    return Finding(
        breaks > 0, f"{breaks} graph breaks, {compiled.graphs} graph", ours=float(breaks)
    )


@RULES("operator-compile-15-18s")
def _operator_compile(evidence: Evidence) -> Finding:
    cost_s = evidence.cold_compile(inference(OPERATOR, "max-autotune", 5))
    return Finding(15 <= cost_s <= 18, f"{cost_s:.1f} s without a cache (one launch)", ours=cost_s)


@RULES("bf16-beats-compile")
def _bf16(evidence: Evidence) -> Finding:
    bf16 = evidence.speedup(matrix.PRECISION.cell(OPERATOR, 1, EAGER))
    one = evidence.latency(inference(OPERATOR), eager=True)
    five = evidence.latency(inference(OPERATOR, "max-autotune", 5), eager=True)
    batch = evidence.over(one, five.per(5))
    norm = evidence.over(one, evidence.latency(inference("operator_groupnorm"), eager=True))
    return Finding(
        all_of(about(bf16, 2.0), about(batch, 1.5), about(norm, 1.2)),
        f"times as fast: bfloat16 {bf16} at batch 1, a sample at batch 5 against batch 1 {batch}, "
        f"GroupNorm {norm}",
        interval=bf16,
    )


@RULES("depth-helps-fusion")
def _depth(evidence: Evidence) -> Finding:
    shallow = evidence.speedup(inference(OPERATOR))
    deep = statistics.quotient(evidence.speedup(inference("operator_12_layers")), shallow)
    trained = statistics.quotient(evidence.speedup(training(OPERATOR)), shallow)
    return Finding(
        all_of(above(deep, 1.0), above(trained, 1.0)),
        f"gain of 12 layers over that of 4: {deep}, of training over inference: {trained}",
        interval=deep,
    )
