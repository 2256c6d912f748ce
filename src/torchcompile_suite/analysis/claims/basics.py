"""Rules for two documents about the basics.

- 000: why torch.compile can look slower, and when it helps
- 001: how torch.compile works inside, and one tiny function

And for PyTorch's own tables of graph breaks: what its CI expects of the timm models.
"""

from __future__ import annotations

from ... import matrix, workloads
from ...compiled import ARTEFACTS
from ...results.records import release
from .. import break_tables, statistics
from ..break_tables import Compared
from .evidence import (
    ABOUT,
    Evidence,
    Finding,
    Missing,
    Rules,
    about,
    above,
    all_of,
    inference,
    listed,
    some,
)

RULES = Rules()
TINY = inference("softmax_matmul")


def _image_models(evidence: Evidence, figure: float) -> Finding:
    """The mean of models. The document has one model, which is not named: so a figure that single
    models have is not contradicted by their mean.
    """
    cells = evidence.family("timm")
    each = statistics.having(map(evidence.speedup, cells))
    speedup = statistics.geometric_mean(each)
    holds = about(speedup, figure)
    least, most = (of(one.value for one in each) for of in (min, max))
    found = Finding(
        holds,
        f"{speedup} times as fast, geometric mean over timm models ({len(each)}) at batch 1, "
        f"which have {least:.2f} to {most:.2f}",
        interval=speedup,
    )
    if holds is False and least * (1 - ABOUT) <= figure <= most * (1 + ABOUT):
        return found._replace(holds=None, opened="single models gain as much")
    return found


@RULES("cpu-inference-1.5x")
def _cpu_inference(evidence: Evidence) -> Finding:
    if evidence.device != "cpu":
        raise Missing("these are results of a GPU")
    return _image_models(evidence, 1.5)


@RULES("consumer-gpu-1.3x")
def _consumer_gpu(evidence: Evidence) -> Finding:
    """Only on such a GPU: one of a data centre gains more, says the document."""
    name = evidence.accelerator
    if "geforce" not in name.lower():
        raise Missing(f"these are results of another GPU: {name or 'not named'}")
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
    cold_s = [evidence.cold_compile(cell).value for cell in (right, wrong)]
    return Finding(
        all_of(operators[1] > operators[0], above(dearer, 1.0)),
        f"{name}: {operators[0]} captured operators become {operators[1]}; a warm compile costs "
        f"{dearer} times as much (cold, one launch each: {cold_s[0]:.0f} and {cold_s[1]:.0f} s)",
        interval=dearer,
    )


@RULES("tiny-function-is-slower-compiled")
def _tiny_function(evidence: Evidence) -> Finding:
    ratio = evidence.ratio(TINY)
    return Finding(
        above(ratio, 1.0),
        f"{ratio} of eager's time; the first call took {evidence.first_call_s(TINY):.1f} s",
        interval=ratio,
    )


@RULES("softmax-fuses-to-one-kernel")
def _softmax_kernels(evidence: Evidence) -> Finding:
    kernels = evidence.count(TINY, "kernels")
    nodes = evidence.count(TINY, "nodes_before")
    return Finding(
        kernels == 1,
        f"generated kernels for {nodes - 1} operations beside the product: {kernels}",
        ours=float(kernels),
    )


@RULES("softmax-fuses-to-one-gpu-kernel")
def _softmax_gpu_kernel(evidence: Evidence) -> Finding:
    code = evidence.generated(TINY.workload).forward
    return Finding(
        code.triton_kernels == 1,
        f"for {code.nodes_before} operations: Triton kernels {code.triton_kernels}, calls of "
        f"libraries {code.library_launches}",
        ours=float(code.triton_kernels),
    )


@RULES("guards-recapture-on-change")
def _guards(evidence: Evidence) -> Finding:
    compiled = evidence.compiled(TINY)
    counts = dict(some(sorted(compiled.recaptures.items()), "no recaptures were recorded"))
    reason = listed(counts)
    if "device" not in counts:
        reason += "; device: " + compiled.unknown.get("recaptures.device", "not tried")
    return Finding(
        all_of(
            *(count == (change != "repeat") for change, count in counts.items()),
            None if "device" not in counts else True,
        ),
        f"captures after a change: {reason}",
        ours=float(sum(counts.values())),
        opened="not every change was tried",
    )


@RULES("data-dependent-flow-breaks-the-graph")
def _data_dependent(evidence: Evidence) -> Finding:
    """The graph breaks and both branches are right; a wrong branch has the outcome wrong-result."""
    cell = inference("branch_on_value")
    if wrong := evidence.wrong(cell):
        return Finding(False, wrong)
    compiled = evidence.compiled(cell)
    ways = some(sorted(compiled.tracing.items()), "no other way of capture was tried")
    breaks = compiled.graph_breaks
    traced = "; ".join(f"{way}: {result}" for way, result in ways)
    where = f" at {breaks[0].where}" if breaks else ""
    return Finding(
        bool(breaks) and "right" not in compiled.tracing.values(),
        f"{len(breaks)} graph break{where}, right on both branches; {traced}",
        ours=float(len(breaks)),
    )


@RULES("compiler-artefacts")
def _artefacts(evidence: Evidence) -> Finding:
    kinds = some(
        evidence.compiled(TINY).artefacts, "the record does not say which files the compile wrote"
    )
    missing = sorted(set(ARTEFACTS) - set(kinds))
    reason = f"missing: {', '.join(missing)}" if missing else f"complete: {', '.join(kinds)}"
    return Finding(not missing, reason, ours=float(len(kinds)))


@RULES("timm-graph-breaks-are-pytorchs")
def _timm(evidence: Evidence) -> Finding:
    """Breaks where the table has some, none where it has none; one place may break several times.

    Of a model that was timed and generated for a GPU, both captures count.
    """
    found = [
        compared
        for measurement in evidence.captures()
        if (compared := break_tables.compared(release(measurement), measurement)) is not None
        and "_timm_" in compared.expected.table
    ]
    known = some(
        (one for one in found if one.equal is not None),
        "no timm model of PyTorch's table was measured; try: asv run --bench 'codegen.Codegen' "
        "RELEASE^!",
    )
    others = [one for one in known if not one.equal]
    models = len({one.workload for one in known})
    tables = ", ".join(sorted({one.expected.table for one in known}))
    reason = (
        f"{len(known) - len(others)} of {len(known)} captures (models: {models}) have "
        f"breaks if {tables} lists some, no more than it, and none if it lists none"
    )
    return Finding(
        not others, "; ".join([reason, *map(_difference, others)]), ours=float(len(others))
    )


def _difference(one: Compared) -> str:
    return f"{one.workload}: {len(one.breaks or [])} here, {one.expected.graph_breaks} there"
