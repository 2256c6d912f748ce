"""Results as JSON, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..analysis import generated
from ..analysis.change import Comparison
from ..analysis.claims import Judged
from ..analysis.summary import Row
from .answers import Answer, Answered


def answers_json(answered: Sequence[Answered]) -> bytes:
    """The answers: a list of objects, the tables as text. ``machine`` is null for what is the same
    on all machines, and ``release`` where nothing was measured.
    """
    content = [
        {
            "question": asked.name,
            "title": asked.title,
            "machine": machine or None,
            "release": release or None,
            **answer_content(answer),
        }
        for asked, machine, release, answer in answered
    ]
    return msgspec.json.format(msgspec.json.encode(content))


def answer_content(answer: Answer) -> dict[str, Any]:
    """An answer, for JSON: the sentence, and the table with its numbers as text."""
    return {
        "sentence": answer.sentence,
        "columns": answer.sheet.columns,
        "rows": answer.sheet.lines,
    }


def claims_json(judged: Sequence[Judged]) -> bytes:
    """The claims: a list of objects. ``ours`` and ``interval`` may be null."""
    content = [
        {
            "id": claim.id,
            "seed": claim.seed,
            "document": claim.document,
            "says": claim.says,
            "verdict": verdict,
            "ours": ours,
            "interval": None if interval is None else [interval.low, interval.high],
            "reason": reason,
        }
        for claim, verdict, ours, interval, reason in judged
    ]
    return msgspec.json.format(msgspec.json.encode(content))


def comparison_json(comparison: Comparison, code: generated.Comparison | None = None) -> bytes:
    """The comparison: one object, intervals as [value, low, high]. ``code``: what was generated
    for targets, compared exactly.
    """
    content: dict[str, Any] = {
        "machine": comparison.machine,
        "before": comparison.before,
        "after": comparison.after,
        "cells": len(comparison.changes),
        "compared": comparison.compared,
        "paired": comparison.paired,
        "noise": comparison.noise,
        "means": comparison.means,
        "unlike": comparison.unlike,
        "changes": [
            {
                "cell": change.cell,
                "machine": comparison.machine_of[change.cell],
                "gap": change.gap,
                "moved": change.moved,
                "effects": {
                    name: {
                        "factor": effect.factor,
                        "p": effect.p,
                        "q": effect.q,
                        "verdict": effect.difference,
                        "paired": effect.paired,
                    }
                    for name, effect in change.effects.items()
                },
            }
            for change in comparison.changes
        ],
        "generated": None if code is None else generated_content(code),
    }
    return msgspec.json.format(msgspec.json.encode(content))


def generated_json(code: generated.Comparison) -> bytes:
    """What two releases generated for targets, compared exactly: one object. Nothing was timed."""
    content = {"before": code.before, "after": code.after, "generated": generated_content(code)}
    return msgspec.json.format(msgspec.json.encode(content))


def generated_content(code: generated.Comparison) -> dict[str, Any]:
    """What two releases generated for targets, for JSON."""
    return {
        "compared": code.compared,
        "differences": [difference._asdict() for difference in code.differences],
        "gaps": [gap._asdict() for gap in code.gaps],
    }


def rows_json(rows: Sequence[Row]) -> bytes:
    """The measured cells: a list of objects, intervals as [value, low, high]."""
    return msgspec.json.format(msgspec.json.encode([row._asdict() for row in rows]))
