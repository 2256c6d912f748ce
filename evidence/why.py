"""Do the parts of a call add up to the call, and do eager's agree with torch.profiler's?

Each model of the history, batch 1, mode default, on the newest release, a launch each. Then
eager's operators of three models beside a plain script with torch.profiler (plain/profiled.py).

    python -m evidence.why [--kept]
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from torchcompile_suite import matrix
from torchcompile_suite.analysis.why import MISSING
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine.processes import of_release
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments
from torchcompile_suite.trial.why import attributed

from . import tables

RECORD = Path(__file__).with_suffix(".jsonl")
PLAIN = Path(__file__).with_name("plain") / "profiled.py"
PROFILED = ("resnet18", "vit_tiny_patch16_224", "mobilenetv3_small_100")
# An operator with a smaller share is not listed.
LEAST = 0.03
# What torch.nn.functional calls, and the operator that the profiler names.
_ALIAS = {"iadd": "add", "dropout_": "dropout"}


class Kept(msgspec.Struct, frozen=True):
    """A model: seconds of a call, and of its parts. ``shares``: of eager, by operator, ours and the
    profiler's.
    """

    model: str
    torch: str
    eager_s: float
    operators_s: float
    compiled_s: float
    parts_s: float
    marks_s: float
    shares: dict[str, tuple[float, float]] = {}


def models() -> list[str]:
    """Those of the history, in mode default at batch 1."""
    return [cell.workload for cell in matrix.SERIES if cell == Cell(cell.workload, 1, "default")]


def measure() -> None:
    """Measure what is not kept yet."""
    kept = {one.model for one in read_lines(RECORD, Kept)}
    python = environments.ready(catalogue.read()[-1])
    for model in models():
        if model in kept:
            continue
        with tempfile.TemporaryDirectory(prefix="why-") as folder:
            made = attributed(of_release(python), Cell(model, 1, "default"), Path(folder, "cache"))
        found = made.attribution
        if found is None:
            print(f"{model}: {made.outcome}")
            continue
        operators: defaultdict[str, float] = defaultdict(float)
        for step in found.eager.steps:
            operators[_name(step.name)] += step.seconds
        shares = _beside_profiler(python, model, operators) if model in PROFILED else {}
        one = Kept(
            model,
            made.environment.torch if made.environment else "",
            found.eager.call_s,
            sum(operators.values()),
            found.mode.call_s,
            found.mode.sum_s,
            found.mode.marks_s,
            shares,
        )
        append_line(RECORD, msgspec.json.encode(one))
        print(model, f"{one.operators_s / one.eager_s:.3f} {one.parts_s / one.compiled_s:.3f}")


def _name(called: str) -> str:
    return _ALIAS.get(called, called.strip("_"))


def _beside_profiler(
    python: Path, model: str, operators: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    command = [str(python), str(PLAIN), model]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    theirs = {name: float(share) for name, share, _ in lines}
    whole = sum(operators.values())
    return {
        name: (operators.get(name, 0.0) / whole, theirs.get(name, 0.0))
        for name in sorted({*operators, *theirs}, key=lambda name: -operators.get(name, 0.0))
        if max(operators.get(name, 0.0) / whole, theirs.get(name, 0.0)) >= LEAST
    }


def parts() -> list[tables.Part]:
    """The tables."""
    kept = sorted(read_lines(RECORD, Kept), key=lambda one: one.model)
    near = sum(_off(one.parts_s, one.compiled_s) <= MISSING for one in kept)
    eager = sum(_off(one.operators_s, one.eager_s) <= MISSING for one in kept)
    columns = ["model", "eager ms", "operators", "compiled ms", "parts", "marks"]
    lines = [
        [
            one.model,
            f"{one.eager_s * 1e3:.3f}",
            f"{one.operators_s / one.eager_s - 1:+.1%}",
            f"{one.compiled_s * 1e3:.3f}",
            f"{one.parts_s / one.compiled_s - 1:+.1%}",
            f"{one.marks_s / one.compiled_s:.1%}",
        ]
        for one in kept
    ]
    return [
        f"Within {MISSING:.0%} of the call: the parts of {near} of {len(kept)} compiled calls; the "
        f"operators of {eager} of {len(kept)} eager calls, whose rest is Python.",
        Sheet(columns, frozenset(columns[1:]), lines),
        *_agreement(kept),
    ]


def _off(parts_s: float, call_s: float) -> float:
    return abs(parts_s / call_s - 1)


def _agreement(kept: Iterable[Kept]) -> list[tables.Part]:
    lines = [
        [one.model, name, f"{ours:.1%}", f"{theirs:.1%}"]
        for one in kept
        for name, (ours, theirs) in one.shares.items()
    ]
    columns = ["model", "operator", "share here", "torch.profiler"]
    return [Sheet(columns, frozenset(columns[2:]), lines)] if lines else []


if __name__ == "__main__":
    tables.run("why", parts, measure)
