"""Rules for PyTorch's own tables of graph breaks: what its CI expects of the timm models."""

from __future__ import annotations

from ....results.records import release
from ... import break_tables
from ...break_tables import Compared
from ..evidence import Evidence, Missing
from ..rule import Finding, Rules

RULES = Rules()


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
    known = [one for one in found if one.equal is not None]
    if not break_tables.read(break_tables.FILE):
        raise Missing(
            "PyTorch's tables are not in this copy of the suite; python -m evidence.break_tables "
            "CLONE_OF_PYTORCH adds them"
        )
    if not known:
        raise Missing(
            "no timm model of PyTorch's table was measured; try: asv run --bench "
            "'codegen.Codegen' RELEASE^!"
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
