"""What documents claim about torch.compile, and what the results of a point say about it."""

from __future__ import annotations

from typing import Any

from ...analysis.claims import Verdict, judge
from ...presentation.wording import plural
from ..content import Machine
from ..packs import figure
from .common import table

# The names of the data are published and do not change.
COLUMNS = ["id", "document", "says", "verdict", "ours", "low", "high", "reason"]
DOCUMENT_COLUMNS = ["id", "kind", "subject", "hardware", "setting"]


def document(machine: Machine, point: str) -> dict[str, Any]:
    """The claims, judged by the results of a point.

    A rule compares cells with each other. So the claims of an assembled history are judged by the
    machine that shows most of its cells. What the release generates for targets is of no machine.
    """
    name = machine.fullest(point)
    cells = machine.sides[name][point].cells
    judged = judge(cells.values(), machine.device, machine.code.of(point))
    whose = name if machine.several else machine.title
    count = {verdict: sum(item.verdict is verdict for item in judged) for verdict in Verdict}
    documents = list(dict.fromkeys(item.claim.document for item in judged))
    return {
        "sentence": (
            f"{plural(len(judged), 'claim')} of {plural(len(documents), 'document')}, judged by "
            f"the results of {whose}: {count[Verdict.CONFIRMED]} confirmed, "
            f"{count[Verdict.CONTRADICTED]} contradicted, {count[Verdict.NOT_MEASURABLE]} that "
            "these results cannot decide."
        ),
        **table(
            COLUMNS,
            (
                [
                    *(item.claim.id, item.claim.seed, item.claim.says, item.verdict.value),
                    figure(item.ours),
                    *(
                        (figure(item.interval.low), figure(item.interval.high))
                        if item.interval
                        else (None, None)
                    ),
                    item.reason,
                ]
                for item in judged
            ),
        ),
        "documents": table(
            DOCUMENT_COLUMNS,
            ([one.id, one.kind, one.subject, one.hardware, one.setting] for one in documents),
        ),
    }
