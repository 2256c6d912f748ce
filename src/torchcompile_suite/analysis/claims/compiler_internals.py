"""Rules for document 001: how torch.compile works inside, and one tiny function.

And for PyTorch's own tables of graph breaks: what its CI expects of the timm models.
"""

from __future__ import annotations

from ...compiled import ARTEFACTS
from ...results.records import release
from .. import break_tables
from ..break_tables import Compared
from .evidence import Evidence, Finding, Missing, Rules, above, inference, listed, some

RULES = Rules()
TINY = inference("softmax_matmul")


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
        f"{kernels} generated kernel for {nodes - 1} operations beside the product",
        ours=float(kernels),
    )


@RULES("softmax-fuses-to-one-gpu-kernel")
def _softmax_gpu_kernel(evidence: Evidence) -> Finding:
    code = evidence.generated(TINY.workload).forward
    return Finding(
        code.triton_kernels == 1,
        f"{code.triton_kernels} Triton kernel and {code.library_launches} call of a library for "
        f"{code.nodes_before} operations",
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
        all(count == (change != "repeat") for change, count in counts.items()),
        f"captures after a change: {reason}",
        ours=float(sum(counts.values())),
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
    """Exact: a model with another number of graph breaks contradicts.

    Of a model that was timed and generated for a GPU, both captures count.
    """
    found = [
        compared
        for measurement in evidence.captures()
        if (compared := break_tables.compared(release(measurement), measurement)) is not None
    ]
    if not break_tables.read(break_tables.FILE):
        raise Missing(
            "PyTorch's tables are not in this copy of the suite; python -m evidence.break_tables "
            "CLONE_OF_PYTORCH adds them"
        )
    known = some(
        (one for one in found if one.equal is not None),
        "no timm model of PyTorch's table was measured; try: asv run --bench 'codegen.Codegen' "
        "RELEASE^!",
    )
    others = [one for one in known if not one.equal]
    models = len({one.workload for one in known})
    reason = (
        f"{len(known) - len(others)} of {len(known)} captures of {models} models have as many "
        f"graph breaks as {', '.join(sorted({one.expected.table for one in known}))} lists"
    )
    return Finding(
        not others, "; ".join([reason, *map(_difference, others)]), ours=float(len(others))
    )


def _difference(one: Compared) -> str:
    return f"{one.workload}: {len(one.breaks or [])} here, {one.expected.graph_breaks} there"
