"""What documents claim about torch.compile, and what the records say to it."""

from __future__ import annotations

from collections.abc import Iterator

from ...analysis.claims import Judged, Verdict, judge
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
    """One for each machine and release."""
    return (
        _page(content, machine, release)
        for machine in content.machines
        for release in machine.releases
    )


def path(machine: Machine) -> str:
    """Of the newest release."""
    return paths.claims(machine.name, machine.releases[-1])


def _page(content: Content, machine: Machine, release: str) -> Page:
    judged = judge(machine.measurements(release), machine.device)
    count = {verdict: sum(1 for each in judged if each.verdict is verdict) for verdict in Verdict}
    return Page(
        paths.claims(machine.name, release),
        "claims",
        f"Are the claims true here? PyTorch {label(release)}",
        [
            f"Of {common.plural(len(judged), 'claim')} {count[Verdict.CONFIRMED]} are confirmed "
            f"and {count[Verdict.CONTRADICTED]} contradicted on {machine.name}; "
            f"{count[Verdict.NOT_MEASURABLE]} cannot be judged by what was measured here.",
            "A verdict follows from a rule written beside the claim, on recorded results only.",
        ],
        [
            *common.machines(content, machine, path),
            common.releases(machine, release, lambda each: paths.claims(machine.name, each)),
        ],
        [Section("Claims", "claims", tables=[_table(judged)])],
        [
            {
                "id": each.claim.id,
                "document": each.claim.seed,
                "says": each.claim.says,
                "verdict": each.verdict.value,
                "ours": each.ours,
                "low": each.interval.low if each.interval else None,
                "high": each.interval.high if each.interval else None,
                "reason": each.reason,
            }
            for each in judged
        ],
    )


def _table(judged: list[Judged]) -> Table:
    lines: list[list[Value]] = [
        [
            each.claim.id,
            f"{each.claim.says} ({each.claim.seed})",
            Marked(each.verdict.value, KINDS[each.verdict]),
            each.reason,
        ]
        for each in judged
    ]
    columns = ["claim", "the document says", "verdict", "what we found"]
    return Table("Each claim with its source.", columns, frozenset(), lines)
