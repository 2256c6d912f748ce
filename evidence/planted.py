"""Does `why` name the part of a call that was made slower?

Each fault of attributed.py in each of its models, on the newest release: two launches with the
fault are compared with two launches without it, in turns. A fault knows what it has hit: a kernel,
a library's function, an operator, or a part of the call outside of all kernels.

    python -m evidence.planted [--kept]
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from torchcompile_suite.analysis import why
from torchcompile_suite.analysis.why import Family
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine.processes import of_release
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments
from torchcompile_suite.trial import why as trials
from torchcompile_suite.workloads import VARIABLE

from . import tables

RECORD = Path(__file__).with_suffix(".jsonl")
WORKLOADS = Path(__file__).with_name("attributed.py")
LAUNCHES = 2
# Fault -> the group that it makes slower, where that is no operator's.
AROUND = {
    "dear guards": "guards",
    "dear buffers": "buffers between kernels",
    "slow entry": "outside of the operators",
}


class Kept(msgspec.Struct, frozen=True):
    """A fault in a model: what it has hit, the first line of the answer and its milliseconds.

    ``right``: whether that line is what was hit; against the sound code, and against eager.
    """

    fault: str
    model: str
    hit: list[str]
    first: str
    difference_ms: float
    call_ms: float
    right: bool
    right_against_eager: bool


def measure() -> None:
    """Measure what is not kept yet."""
    from . import attributed

    python = environments.ready(catalogue.read()[-1])
    kept = {(one.fault, one.model) for one in read_lines(RECORD, Kept)}
    for model in attributed.MODELS:
        for fault in attributed.FAULTS:
            if (fault, model) in kept:
                continue
            one = compared(python, model, fault)
            append_line(RECORD, msgspec.json.encode(one))
            print(f"{one.model}, {one.fault}: {one.right}, {one.first}", flush=True)


def launches(
    python: Path, model: str, faults: Sequence[str]
) -> tuple[list[list[Launch]], list[str]]:
    """Launches with each of the faults, in turns, and the names of what was hit."""
    from . import attributed

    cell = Cell(model, 1, "default")
    made: list[list[Launch]] = [[] for _ in faults]
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        note = Path(folder, "note")
        variables = {attributed.NOTE: str(note), VARIABLE: str(WORKLOADS)}
        for _ in range(LAUNCHES):
            for number, fault in enumerate(faults):
                environment = of_release(python, {**variables, attributed.FAULT: fault})
                one = trials.attributed(environment, cell, Path(folder, str(number)))
                if not one.outcome.ok:
                    raise SystemExit(f"{model}, {fault or 'no fault'}: {one.outcome}")
                made[number].append(one)
        hit = note.read_text().splitlines() if note.exists() else []
    return made, list(dict.fromkeys(hit))


def compared(python: Path, model: str, fault: str) -> Kept:
    """What the answer says of the fault."""
    (sound, faulty), hit = launches(python, model, ["", fault])
    found = why.call_against_call(sound, faulty)
    worst = [
        next(one for one in of.families if one.difference_s.value > 0)
        for of in (found, why.compiled_against_eager(faulty))
    ]
    return Kept(
        fault,
        model,
        hit,
        worst[0].what,
        worst[0].difference_s.value * 1e3,
        found.before.calls_s[0] * 1e3,
        *(_right(fault, hit, family) for family in worst),
    )


def _right(fault: str, hit: Sequence[str], family: Family) -> bool:
    """Whether the family is what the fault has hit."""
    if fault in AROUND:
        return family.what == AROUND[fault]
    steps = [step for group in family.groups for step in group.after]
    called = {operator.called for group in family.groups for operator in group.operators}
    if fault == "no fusion":
        return any(step.kind == "generated" for step in steps)
    if fault == "slow operator":
        return bool(called.intersection(hit))
    if fault == "copied weights" and any(step.weights for step in steps):
        return True  # in a kernel with other work, which the answer names as such
    if fault.startswith("copied"):  # in a kernel of its own, or in what the library wants
        return bool(called.intersection(("conv2d", "linear")))
    return any(step.name in hit for step in steps)


def parts() -> list[tables.Part]:
    """The tables."""
    kept = list(read_lines(RECORD, Kept))
    lines = [
        [
            one.fault,
            one.model,
            ", ".join(one.hit) or AROUND.get(one.fault, "-"),
            one.first,
            f"{one.call_ms:.3f}",
            f"{one.difference_ms:+.3f}",
            *("yes" if right else "no" for right in (one.right, one.right_against_eager)),
        ]
        for one in kept
    ]
    columns = [
        "fault",
        "model",
        "hit",
        "named first",
        "call ms",
        "ms more",
        "right",
        "against eager",
    ]
    right = sum(one.right for one in kept)
    eager = sum(one.right_against_eager for one in kept)
    return [
        f"Named first, and right: {right} of {len(kept)} against the sound code, {eager} of "
        f"{len(kept)} against eager.",
        Sheet(columns, frozenset(("call ms", "ms more")), lines),
    ]


if __name__ == "__main__":
    tables.run("planted", parts, measure)
