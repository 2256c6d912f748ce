"""What documents claim about torch.compile, and what the results say about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...analysis.claims import Document, Judged, Verdict, judge
from .. import paths
from ..content import Content, Machine, label
from ..page import Marked, Page, Section, Table, Value
from . import common

KINDS = {
    Verdict.CONFIRMED: "gain",
    Verdict.CONTRADICTED: "loss",
    Verdict.NOT_MEASURABLE: "gap",
}


def pages(content: Content) -> Iterator[Page]:
    """One page for each machine and release."""
    return common.page_a_release(content, _page)


def path(machine: Machine) -> str:
    """The page of the newest release."""
    return paths.claims(machine.name, machine.releases[-1])


def _page(content: Content, machine: Machine, release: str) -> Page:
    judged = judge(machine.measurements(release), machine.device)
    count = {verdict: sum(item.verdict is verdict for item in judged) for verdict in Verdict}
    documents = list(dict.fromkeys(item.claim.document for item in judged))
    return Page(
        paths.claims(machine.name, release),
        "claims",
        f"Are the claims true here? PyTorch {label(release)}",
        [
            f"{common.plural(len(judged), 'claim')} of "
            f"{common.plural(len(documents), 'document')}, judged by the results of "
            f"{machine.name}: {count[Verdict.CONFIRMED]} confirmed, "
            f"{count[Verdict.CONTRADICTED]} contradicted, {count[Verdict.NOT_MEASURABLE]} that "
            "these results cannot decide.",
            "A verdict follows from a fixed rule for the claim, and from recorded results only. "
            "The documents are not published here; each is described above its claims.",
        ],
        [
            *common.machines(content, machine, path),
            common.releases(machine, release, lambda other: paths.claims(machine.name, other)),
        ],
        [
            _section(document, [item for item in judged if item.claim.document == document])
            for document in documents
        ],
        [_flat(item) for item in judged],
    )


def _section(document: Document, judged: list[Judged]) -> Section:
    return Section(
        document.subject,
        f"document-{document.id.partition('_')[0]}",
        [
            f"{document.kind}. File name: {document.id}.",
            f"Hardware: {document.hardware}.",
            f"Setting: {document.setting}",
        ],
        tables=[_table(document, judged)],
    )


def _table(document: Document, judged: list[Judged]) -> Table:
    lines: list[list[Value]] = [
        [
            item.claim.id,
            item.claim.says,
            Marked(item.verdict.value, KINDS[item.verdict]),
            item.reason,
        ]
        for item in judged
    ]
    columns = ["claim", "the document says", "verdict", "our results"]
    return Table(f"The claims of {document.id}.", columns, frozenset(), lines)


def _flat(judged: Judged) -> dict[str, Any]:
    claim, interval = judged.claim, judged.interval
    return {
        "id": claim.id,
        "document": claim.seed,
        "says": claim.says,
        "verdict": judged.verdict.value,
        "ours": judged.ours,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "reason": judged.reason,
        "document_kind": claim.document.kind,
        "document_subject": claim.document.subject,
        "document_hardware": claim.document.hardware,
        "document_setting": claim.document.setting,
    }
