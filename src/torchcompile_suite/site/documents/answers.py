"""What people ask, what documents claim, and whether one can trust a machine's results.

An answer and a rule of a claim compare cells with each other. So those of an assembled history are
of the ``machine`` that shows most of its cells. What a release generates for targets is of no
machine.
"""

from __future__ import annotations

import math
from collections import Counter
from operator import attrgetter
from typing import Any

from ... import matrix
from ...analysis import change, statistics
from ...analysis.claims import Verdict, judge
from ...analysis.coverage import coverage
from ...presentation import answers, sheets
from ...presentation.wording import plural
from .. import packs
from ..content import Machine
from ..packs import figure, figures, table

# The names of the data are published and do not change.
CLAIM_COLUMNS = ["id", "document", "says", "verdict", "ours", "low", "high", "reason"]
DOCUMENT_COLUMNS = ["id", "kind", "subject", "hardware", "setting"]
COVERAGE = ["point", "core_cells", "ok", "ended_otherwise", "not_measured", "unexplained"]
ENVIRONMENT = ["point", "Python", "compiler", "allocator", "threads", "kernel", "driver", "cells"]


def document(machine: Machine, point: str) -> dict[str, Any]:
    """The answers that need times: a sentence and a table of text for each question."""
    name = machine.fullest(point)
    records = [entry.record for entry in machine.of(point) if entry.row.machine == name]
    parts = [record for (of, at, _), record in machine.divided.items() if (of, at) == (name, point)]
    questions = []
    for asked in answers.QUESTIONS:
        if not asked.of_targets:
            sentence, sheet = asked.answer(parts if asked.of_parts else records)
            told = {"name": asked.name, "title": asked.title, "sentence": sentence}
            questions.append({**told, **packs.sheet(sheet)})
    return {**({"machine": name} if machine.several else {}), "questions": questions}


def claims(machine: Machine, point: str) -> dict[str, Any]:
    """The claims, judged by the results of a point."""
    name = machine.fullest(point)
    cells = machine.sides[name][point].cells
    judged = judge(cells.values(), machine.device, machine.code.get(point, ()))
    whose = name if machine.several else machine.title
    count = {verdict: sum(item.verdict is verdict for item in judged) for verdict in Verdict}
    documents = sheets.documents(judged).lines
    return {
        "sentence": (
            f"{plural(len(judged), 'claim')} of {plural(len(documents), 'document')}, judged by "
            f"the results of {whose}: {count[Verdict.CONFIRMED]} confirmed, "
            f"{count[Verdict.CONTRADICTED]} contradicted, {count[Verdict.NOT_MEASURABLE]} that "
            "these results cannot decide."
        ),
        **table(
            CLAIM_COLUMNS,
            (
                [
                    *(item.claim.id, item.claim.seed, item.claim.says, item.verdict.value),
                    *(figure(item.ours), *figures(item.interval)[1:], item.reason),
                ]
                for item in judged
            ),
        ),
        "documents": table(DOCUMENT_COLUMNS, documents),
    }


def trust(machine: Machine) -> dict[str, Any]:
    """What a reader needs to know before he believes a figure of the machine."""
    return {
        "text": [*_text(machine), *filter(None, [machine.older_method])],
        "facts": table(["property", "value"], machine.facts.items()),
        "coverage": table(COVERAGE, _coverage(machine)),
        "failures": table(["cell", "point", "outcome", "reason"], _failures(machine)),
        "environments": table(ENVIRONMENT, _environments(machine)),
    }


def _text(machine: Machine) -> list[str]:
    measurements = [entry.measurement for entry in machine.entries]
    launches = [launch for measurement in measurements for launch in measurement.launches]
    disturbed = sum(bool(launch.disturbed) for launch in launches)
    failed = sum(not measurement.outcome.ok for measurement in measurements)
    noise = change.noise_floor(measurements)
    floor = "The noise floor was not measured: there are no eager cells."
    if noise is not None:
        floor = (
            "Noise floor: the true ratio of eager to eager is 1. In one launch it is off by "
            f"{noise:.1%} (root mean square). Intervals are over launches, so they include this "
            "error."
        )
    several = (
        f"These are {plural(len(machine.machines), 'machine')} of one class: "
        f"{', '.join(machine.machines)}. All of a cell comes from one of them, the one that has it "
        "most completely. Means are of ratios within a machine."
    )
    return [
        *([several] if machine.several else []),
        f"{plural(len(measurements), 'measurement')} of "
        f"{plural(len(machine.points), machine.axis.noun)} in {plural(len(launches), 'launch')}. "
        f"Disturbed by other work on the machine, and therefore repeated: {disturbed}. "
        f"{plural(failed, 'measurement')} ended without numbers.",
        floor,
        "Drift: the eager time of the same work, in two measurements of a release, may differ "
        f"by {_percent(math.sqrt(2) * machine.drift)}. Drift changes times; in ratios it cancels.",
        f"In {plural(len(machine.slowed), 'measurement')} the processors were more than "
        f"{statistics.MOST_SLOWDOWN - 1:.0%} slower than at their best, mostly because of another "
        "virtual machine. The pages of these cells say so. asv run with --skip-existing measures "
        "them again.",
    ]


def _percent(log: float) -> str:
    """The half-width of an interval of a log, in per cent."""
    return "an unknown amount" if math.isnan(log) else f"{math.expm1(log):.0%}"


def _coverage(machine: Machine) -> list[list[Any]]:
    wanted = matrix.core_cells()
    rows = []
    for point in machine.points:
        of = coverage(machine.measurements(point), wanted, machine.device)
        counts = [of.ok, len(of.ended), len(of.missing), len(of.unexplained)]
        rows.append([point, len(wanted), *counts])
    return rows


def _failures(machine: Machine) -> list[list[Any]]:
    return [
        [machine.ids[row.cell], row.release, row.outcome.status.value, row.outcome.reason]
        for row in (entry.row for entry in machine.entries)
        if not row.outcome.ok
    ]


def _environments(machine: Machine) -> list[list[Any]]:
    facts = attrgetter("python", "compiler", "allocator", "threads", "kernel", "driver")
    environments = Counter(
        (entry.row.release, *facts(entry.measurement.environment))
        for entry in machine.entries
        if entry.measurement.environment is not None
    )
    return [[*values, count] for values, count in environments.items()]
