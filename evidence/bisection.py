"""Is the commit found that made a model slower, or its compilation dearer?

Each try makes a repository: the sources of PyTorch 2.9.0, then what 2.9.1 changed, a package a
commit, then in random order small edits, a commit that does not import, one whose bindings differ
(each taken back by the next), and two faults: Inductor's generated code runs idle for 10 % of a
call, and Inductor itself for 25 % of a compilation. Good and bad are drawn around the fault, and
`torchcompile_suite.commits.bisection` looks for it, on real torch, all launches new.

``python -m evidence.bisection --tries 10`` makes tries until there are so many of each fault, and
appends each to ``evidence/bisections.jsonl``. On one core, the others idle: two at a time, as the
first nine were, disturb each other so much that each takes twice the launches and the time.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import statistics
import subprocess
import time
from collections import Counter
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from torchcompile_suite.cell import Cell, Plan
from torchcompile_suite.commits import overlay
from torchcompile_suite.commits.bisection import BisectionError, Found, Step, bisect
from torchcompile_suite.commits.clone import Clone
from torchcompile_suite.commits.judge import Side
from torchcompile_suite.commits.measuring import Measuring
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measuring import interpreter
from torchcompile_suite.releases import catalogue, environments

from .pools import ROOT
from .wheels import Repository, sources

BEFORE, AFTER = "2.9.0", "2.9.1"
FOLDER = ROOT / ".asv" / "bisections"
FOUND = Path(__file__).with_name("bisections.jsonl")
COMMITS = 36
SLOWER_CALL, DEARER_COMPILE = 0.10, 0.25
# What a search for each fault goes by: a steady ratio, a quick compilation.
METRICS = {"slower call": "ratio", "dearer compile": "cold-compile"}
CELLS = {
    "slower call": Cell("gpt_decode", 1, "default"),
    "dearer compile": Cell("softmax_matmul", 1, "default"),
}
# Half the usual time for pairs: a search makes more launches instead.
PLAN = Plan(min_timed_s=2.0, max_timed_s=4.0)
# What every process would pay for anew, and no fault is in: precompiling a header that only many
# kernels need, and asking another process, which imports torch, which vector instructions run.
QUICKER = {
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
}
WRAPPER = "torch/_inductor/codegen/wrapper.py"
COMPILE = "torch/_inductor/compile_fx.py"
CALL_BEGINS = "            self.codegen_inputs()\n"
# How many rounds of an idle loop a call takes: both timed in turns, for the machine's speed wavers.
ROUNDS = """
import statistics, sys, time
import torch
from torchcompile_suite import workloads

def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start

def loop():
    for _ in range(10000):
        pass

module, inputs = workloads.get(sys.argv[1]).build(1)
compiled = torch.compile(module.eval())
with torch.inference_mode():
    compiled(*inputs)
    found = [seconds(lambda: compiled(*inputs)) / seconds(loop) * 10000 for _ in range(1000)]
print(statistics.median(found[500:]))
"""


class Size(msgspec.Struct):
    """How large the faults are to be: rounds of an idle loop a call, seconds a compilation."""

    rounds: int
    compile_s: float


class Try(msgspec.Struct):
    """One search. ``right``: the faulty commit and no other was named. ``factor`` is bad over good,
    ``sides`` counts the commits that were measured.
    """

    fault: str
    seed: int
    right: bool
    said: str
    commits: int
    sides: dict[str, int]
    reasons: list[str]
    launches: int
    factor: tuple[float, float, float]
    seconds: float


def calibrate() -> Size:
    """What 10 % of a call and 25 % of a cold compilation are on one core of this machine."""
    known = FOLDER / "size.json"
    if known.exists():
        return msgspec.json.decode(known.read_bytes(), type=Size)
    clone, good = _repository(FOLDER / "calibrate", random.Random(0), Size(0, 0.0))[:2]
    cell, kept = CELLS["dearer compile"], FOLDER / "calibrate.jsonl"
    cold = Measuring(clone, cell, "cold-compile", FOLDER, kept, plan=PLAN, repeats=0)
    cold.measure(good, 3)
    compile_s = statistics.median(cold.values(good))
    python = environments.python_in(FOLDER / "environment")
    done = subprocess.run(
        [python, "-c", ROUNDS, CELLS["slower call"].workload],
        env=interpreter.environment(python),
        capture_output=True,
        text=True,
        check=True,
    )
    size = Size(round(SLOWER_CALL * float(done.stdout)), round(DEARER_COMPILE * compile_s, 3))
    known.write_bytes(msgspec.json.encode(size))
    return size


def _python(version: str) -> dict[str, Path]:
    """The Python sources of a release: an environment is made, and kept, for the two of them."""
    folder = FOLDER / f"sources-{version}"
    if not (folder / "done").exists():
        environments.install(catalogue.find(version), FOLDER / "environment")
        found = sources(overlay.packages_of(FOLDER / "environment"))
        for path, file in found.items():
            if file.suffix == ".py":
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, folder / path)
        (folder / "done").touch()
    files = folder.rglob("*.py")
    return {each.relative_to(folder).as_posix(): each for each in sorted(files)}


def _repository(
    folder: Path, chosen: random.Random, size: Size
) -> tuple[Clone, str, list[str], dict[str, str]]:
    """A clone, its first commit, all after that, and the faulty one of each fault."""
    shutil.rmtree(folder, ignore_errors=True)
    made = Repository(folder)
    old, new = _python(BEFORE), _python(AFTER)
    first = made.begin(BEFORE, old)
    changed: dict[str, list[str]] = {}
    for path in new:
        if path not in old or old[path].read_bytes() != new[path].read_bytes():
            # Files of a package may need each other: which do, only upstream knows.
            changed.setdefault("/".join(path.split("/")[:2]), []).append(path)
    commits = []
    for package, paths in changed.items():
        for path in paths:
            made.write(path, new[path].read_bytes())
        commits.append(made.commit(f"{AFTER}: {package}"))
    kinds = ["slower call", "dearer compile", "does not import", "other bindings"]
    edits = [f"edit {number}" for number in range(COMMITS - len(changed) - len(kinds) - 2)]
    order = [*kinds, *edits]
    chosen.shuffle(order)
    faulty = {}
    for kind in order:
        undo = False
        if kind == "slower call":
            text = made.read(WRAPPER)
            assert text.count(CALL_BEGINS) == 1
            line = f'            self.prefix.writeline("for _ in range({size.rounds}): pass")\n'
            made.write(WRAPPER, text.replace(CALL_BEGINS, CALL_BEGINS + line).encode())
        elif kind == "dearer compile":
            made.append(COMPILE, _dearer(size.compile_s))
        elif kind == "does not import":
            made.append("torch/_inductor/config.py", "\nfrom torch import a_name_it_has_not\n")
            undo = True
        elif kind == "other bindings":
            made.write("torch/csrc/autograd/python_variable.cpp", b"// another signature\n")
            undo = True
        else:
            path = chosen.choice([each for each in new if each.startswith("torch/_")])
            made.append(path, f"\n# {kind}\n")
        commits.append(made.commit(kind))
        if kind in METRICS:
            faulty[kind] = commits[-1]
        if undo:
            commits.append(made.revert())
    return Clone(folder), first, commits, faulty


def _dearer(seconds: float) -> str:
    return f"""

_compile_fx_at_once = compile_fx


def compile_fx(*args, **kwargs):
    import time

    end = time.perf_counter() + {seconds:.3f}
    while time.perf_counter() < end:
        pass
    return _compile_fx_at_once(*args, **kwargs)
"""


def search(fault: str, seed: int, size: Size) -> Try:
    """One try."""
    chosen = random.Random(f"{fault} {seed}")
    clone, first, commits, faulty = _repository(FOLDER / "repository", chosen, size)
    everything = [first, *commits]
    at = everything.index(faulty[fault])
    subjects = {each: clone.subject(each) for each in everything}
    measurable = [
        place
        for place, each in enumerate(everything)
        if subjects[each] not in ("does not import", "other bindings")
    ]
    good = chosen.choice([place for place in measurable if place < at])
    bad = chosen.choice([place for place in measurable if place >= at])
    kept = FOLDER / "search.jsonl"
    kept.unlink(missing_ok=True)
    measuring = Measuring(clone, CELLS[fault], METRICS[fault], FOLDER, kept, plan=PLAN, repeats=0)
    started = time.monotonic()
    asked = everything[good : bad + 1]
    steps: list[Step] = []
    found: Found | None = None
    said = ""
    try:
        found = bisect(asked, measuring, steps.append)
        said = ", ".join(subjects[each] for each in found.suspects)
    except BisectionError as error:
        said = str(error)
    sides = Counter(step.side.value for step in steps)
    return Try(
        fault,
        seed,
        found is not None and found.suspects == [faulty[fault]],
        said,
        len(asked) - 1,
        dict(sides),
        [f"{subjects[each.commit]}: {each.reason}" for each in steps if each.side is Side.UNKNOWN],
        sum(len(each) for each in measuring.launches.values()),
        (math.nan, math.nan, math.nan) if found is None else found.factor,
        round(time.monotonic() - started, 1),
    )


def read() -> list[Try]:
    """The tries that were made."""
    return read_lines(FOUND, Try)


def main() -> None:
    """Make the missing tries and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=10)
    wanted = parser.parse_args().tries
    known = {(each.fault, each.seed) for each in read()}
    jobs = [
        (fault, seed) for seed in range(wanted) for fault in METRICS if (fault, seed) not in known
    ]
    if jobs:
        for version in (BEFORE, AFTER):
            _python(version)
        shutil.rmtree(FOLDER / "environment", ignore_errors=True)
        os.environ.update(QUICKER)
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        size = calibrate()
        print(size, flush=True)
        for fault, seed in jobs:
            made = search(fault, seed, size)
            append_line(FOUND, msgspec.json.encode(made))
            word = "right" if made.right else f"WRONG: {made.said}"
            print(f"{fault} {seed}: {word}, {made.launches} launches, {made.seconds} s", flush=True)
        shutil.rmtree(FOLDER)
    table = Table(title=f"Searches over {BEFORE} to {AFTER}, {COMMITS} commits")
    for name in (
        "fault",
        "cell",
        "tries",
        "right",
        "bad over good",
        "commits",
        "measured",
        "skipped",
    ):
        table.add_column(name)
    for name in ("launches", "s a try", "s a step"):
        table.add_column(name)
    for fault in METRICS:
        mine = [each for each in read() if each.fault == fault]
        if not mine:
            continue
        measured = [each.sides.get("good", 0) + each.sides.get("bad", 0) for each in mine]
        table.add_row(
            fault,
            str(CELLS[fault]),
            str(len(mine)),
            f"{sum(each.right for each in mine)}",
            f"{statistics.median(each.factor[0] for each in mine):.2f}",
            f"{statistics.mean(each.commits for each in mine):.0f}",
            f"{statistics.mean(measured):.1f}",
            str(sum(each.sides.get("cannot tell", 0) for each in mine)),
            f"{statistics.mean(each.launches for each in mine):.0f}",
            f"{statistics.mean(each.seconds for each in mine):.0f}",
            f"{sum(each.seconds for each in mine) / sum(measured):.0f}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
