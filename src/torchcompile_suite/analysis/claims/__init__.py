"""Claims about torch.compile from six documents, judged by recorded results.

``claims.toml`` holds the documents and their claims. Three modules hold the rules, by document.
A rule uses recorded results only: ``evidence`` looks them up by cell, and has what rules
share. This module makes the verdict of each claim, from its rule and the results.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...measurement import Measurement
from ..statistics import Interval
from . import basics, deep_dive, models
from .evidence import Evidence, Missing, Rule

FILE = Path(__file__).with_name("claims.toml")

RULES: dict[str, Rule] = basics.RULES | models.RULES | deep_dive.RULES


class Verdict(str, Enum):
    """What the results say about a claim."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    NOT_MEASURABLE = "not-measurable"


class Document(msgspec.Struct, frozen=True):
    """A document that makes claims, described for readers who do not have it.

    ``id`` is its file name. ``setting`` says what was measured and how, as far as it tells.
    """

    id: str
    kind: str
    subject: str
    hardware: str
    setting: str


class Claim(msgspec.Struct, frozen=True):
    """A claim of a document. ``seed`` is the document's id; ``needs`` is "any" device, "cuda", or
    "code" that was generated for a GPU. ``of_gpu``: the claim's figures are those of a GPU.
    """

    id: str
    seed: str
    says: str
    needs: str
    of_gpu: bool = False

    @property
    def document(self) -> Document:
        """The document that makes the claim."""
        return next(document for document in read_documents() if document.id == self.seed)


class Judged(NamedTuple):
    """A claim with its verdict, our figure, its 95 % interval if there is one, and the reason."""

    claim: Claim
    verdict: Verdict
    ours: float | None
    interval: Interval | None
    reason: str


@cache
def _content() -> dict[str, Any]:
    return msgspec.toml.decode(FILE.read_bytes(), type=dict[str, Any])


def read_documents() -> list[Document]:
    """All documents, in the order of their ids."""
    return msgspec.convert(_content()["document"], list[Document])


def read() -> list[Claim]:
    """All claims, in the order of their documents."""
    return msgspec.convert(_content()["claim"], list[Claim])


def judge(
    measurements: Iterable[Measurement],
    device: str = "cpu",
    generated: Iterable[Measurement] = (),
) -> list[Judged]:
    """The verdict of every claim, by the measurements of one release on one machine, and by what
    the release generated for targets on any machine.
    """
    evidence = Evidence(measurements, device, generated)
    return [_judge(claim, evidence) for claim in read()]


def _judge(claim: Claim, evidence: Evidence) -> Judged:
    if claim.needs == "cuda" and evidence.device != "cuda":
        return _not_measurable(claim, "needs a CUDA device; this machine has none")
    try:
        finding = RULES[claim.id](evidence)
    except Missing as missing:
        return _not_measurable(claim, str(missing))
    except ArithmeticError:
        # A stranger's counts can be 0 where something was counted.
        return _not_measurable(claim, "the recorded figures cannot be divided by each other")
    interval = finding.interval
    ours = finding.ours if interval is None else interval.value
    if finding.holds is None:
        reason = f"{finding.opened}: {finding.reason}"
        return Judged(claim, Verdict.NOT_MEASURABLE, ours, interval, reason)
    verdict = Verdict.CONFIRMED if finding.holds else Verdict.CONTRADICTED
    other = " (on a CPU; the document is about a GPU)" * (claim.of_gpu and evidence.device == "cpu")
    return Judged(claim, verdict, ours, interval, finding.reason + other)


def _not_measurable(claim: Claim, reason: str) -> Judged:
    return Judged(claim, Verdict.NOT_MEASURABLE, None, None, reason)
