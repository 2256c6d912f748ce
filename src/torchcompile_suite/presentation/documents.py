"""Results as JSON, for programs: the objects that are written. docs/schemas/ has their schemas.

An interval is [value, low, high]. A number that is not known or not finite is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..analysis import generated
from ..analysis.change import Comparison, Effect
from ..analysis.claims import Document, Judged, Verdict
from ..analysis.statistics import Interval
from ..cell import Cell
from .answers import Answered
from .stories import ComparedReason
from .wording import written


class AnsweredQuestion(Struct):
    """A question with its answer: a sentence, and the table that it comes from, as text.

    ``machine`` is null for what is the same on all machines, and ``release`` where nothing was
    measured.
    """

    question: str
    title: str
    machine: str | None
    release: str | None
    sentence: str
    columns: list[str]
    rows: list[list[str]]


def answers_json(answered: Sequence[Answered]) -> bytes:
    """The answers: a list of `AnsweredQuestion`."""
    content = [
        AnsweredQuestion(
            question=asked.name,
            title=asked.title,
            machine=machine or None,
            release=release or None,
            sentence=answer.sentence,
            columns=answer.sheet.columns,
            rows=answer.sheet.lines,
        )
        for asked, machine, release, answer in answered
    ]
    return written(content)


class JudgedClaim(Struct):
    """A claim of a document with its verdict.

    ``seed``: the document's id. ``ours``: our figure, ``interval``: its 95 % interval; null if
    there is none.
    """

    id: str
    seed: str
    document: Document
    says: str
    verdict: Verdict
    ours: float | None
    interval: tuple[float, float] | None
    reason: str


def claims_json(judged: Sequence[Judged]) -> bytes:
    """The claims: a list of `JudgedClaim`."""
    content = [
        JudgedClaim(
            id=claim.id,
            seed=claim.seed,
            document=claim.document,
            says=claim.says,
            verdict=verdict,
            ours=ours,
            interval=None if interval is None else (interval.low, interval.high),
            reason=reason,
        )
        for claim, verdict, ours, interval, reason in judged
    ]
    return written(content)


class ComparedCell(Struct):
    """A cell of two releases: its figures by name, or in ``gap`` why there are none.

    ``moved``: which time changed beyond noise, "eager", "compiled", "both" or "".
    """

    cell: Cell
    machine: str
    gap: str
    moved: str
    effects: dict[str, Effect]


class ComparedCode(Struct):
    """What two releases generated for targets, compared exactly. ``compared``: number of cells."""

    compared: int
    differences: list[generated.Difference]
    gaps: list[generated.Gap]


class ComparedReleases(Struct):
    """Two releases compared; see `analysis.change.Comparison`. ``cells``, ``in_means``: their
    number.
    """

    machine: str
    before: str
    after: str
    cells: int
    compared: int
    paired: int
    noise: float | None
    in_means: int
    means: dict[str, Interval]
    unlike: list[Cell]
    packages: dict[str, list[Cell]]
    changes: list[ComparedCell]
    reasons: list[ComparedReason]
    generated: ComparedCode | None


class ComparedTargets(Struct):
    """Two releases of which nothing was timed on one machine, but code was generated."""

    before: str
    after: str
    generated: ComparedCode


def comparison_json(
    comparison: Comparison,
    code: generated.Comparison | None = None,
    reasons: Iterable[ComparedReason] = (),
) -> bytes:
    """The comparison: one `ComparedReleases`. ``code``: what was generated for targets."""
    content = ComparedReleases(
        machine=comparison.machine,
        before=comparison.before,
        after=comparison.after,
        cells=len(comparison.changes),
        compared=comparison.compared,
        paired=comparison.paired,
        noise=comparison.noise,
        in_means=len(comparison.in_means),
        means=comparison.means,
        unlike=comparison.unlike,
        packages=comparison.packages,
        changes=[
            ComparedCell(
                change.cell,
                comparison.machine_of[change.cell],
                change.gap,
                change.moved,
                change.effects,
            )
            for change in comparison.changes
        ],
        reasons=list(reasons),
        generated=None if code is None else _code(code),
    )
    return written(content)


def generated_json(code: generated.Comparison) -> bytes:
    """What two releases generated for targets: one `ComparedTargets`."""
    return written(ComparedTargets(code.before, code.after, _code(code)))


def _code(code: generated.Comparison) -> ComparedCode:
    return ComparedCode(code.compared, code.differences, code.gaps)
