"""Does a search find the commit that made a model slower, or its compilation dearer?

Each search makes a repository. It begins with the sources of PyTorch 2.9.0. Then come the changes
of 2.9.1, one package a commit. Then come, in random order: small edits, a commit that does not
import, a commit with other bindings (the next commit reverts each of the two), and two faults. With
one fault the code that Inductor generates idles for 10 % of a call; with the other Inductor itself
idles for 25 % of a compilation. The good and the bad commit are drawn around the fault, and
`torchcompile_suite.commits.bisection` searches for it, with real torch and new launches.

Searches until there are `SEARCHES` of each fault, and appends each search to
``evidence/bisections.jsonl``. A search runs on one core and needs the others idle. Two searches at
a time, as the first nine were, disturb each other: each takes twice the launches and the time.
"""

from __future__ import annotations

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

from torchcompile_suite.cell import Cell
from torchcompile_suite.commits.bisection import Result, Step, bisect
from torchcompile_suite.commits.clone import Clone
from torchcompile_suite.commits.judge import Side
from torchcompile_suite.commits.measuring import Measuring
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments
from torchcompile_suite.request import Plan

from . import collect, tables
from .collect import ROOT
from .wheels import Repository, sources

BEFORE, AFTER = "2.9.0", "2.9.1"
FOLDER = ROOT / ".asv" / "bisections"
KEPT = Path(__file__).with_name("bisections.jsonl")
SEARCHES = 10
COMMITS = 36
SLOWER_CALL, DEARER_COMPILE = 0.10, 0.25
# The metric of the search for each fault: a steady ratio, a quick compilation.
METRICS = {"slower call": "ratio", "dearer compile": "cold-compile"}
CELLS = {
    "slower call": Cell("gpt_decode", 1, "default"),
    "dearer compile": Cell("softmax_matmul", 1, "default"),
}
# Half of the usual time for pairs: a search makes more launches instead.
PLAN = Plan(min_timed_s=2.0, max_timed_s=4.0)
# Work of every process that no fault touches: to precompile a header that only many kernels need,
# and to start another process, which imports torch, to learn which vector instructions run.
QUICKER = {
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
}
WRAPPER = "torch/_inductor/codegen/wrapper.py"
COMPILE = "torch/_inductor/compile_fx.py"
CALL_BEGINS = "            self.codegen_inputs()\n"
# Rounds of an idle loop that last as long as a call. Both are timed in turns, because the speed of
# the machine drifts.
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
    rounds = [seconds(lambda: compiled(*inputs)) / seconds(loop) * 10000 for _ in range(1000)]
print(statistics.median(rounds[500:]))
"""


class Size(msgspec.Struct):
    """The sizes of the faults: rounds of an idle loop in a call, seconds in a compilation."""

    rounds: int
    compile_s: float


class Search(msgspec.Struct):
    """One search and its end.

    ``right``: it named the faulty commit and no other; ``named``: the commits that it named, or why
    it named none; ``commits``: the commits searched; ``sides``: the measured commits, counted by
    side; ``factor``: bad over good with its interval.
    """

    fault: str
    seed: int
    right: bool
    named: str = msgspec.field(name="said")
    commits: int
    sides: dict[str, int]
    reasons: list[str]
    launches: int
    factor: tuple[float, float, float]
    seconds: float


def calibrate() -> Size:
    """10 % of a call and 25 % of a cold compilation, on one core of this machine."""
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
        env=collect.variables(python),
        capture_output=True,
        text=True,
        check=True,
    )
    size = Size(round(SLOWER_CALL * float(done.stdout)), round(DEARER_COMPILE * compile_s, 3))
    known.write_bytes(msgspec.json.encode(size))
    return size


def _python(version: str) -> dict[str, Path]:
    """The Python sources of a release, by path; the first call for a release installs it."""
    folder = FOLDER / f"sources-{version}"
    if not (folder / "done").exists():
        environments.install(catalogue.find(version), FOLDER / "environment")
        for path, file in sources(environments.packages_in(FOLDER / "environment")).items():
            if file.suffix == ".py":
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, folder / path)
        (folder / "done").touch()
    files = folder.rglob("*.py")
    return {file.relative_to(folder).as_posix(): file for file in sorted(files)}


def _repository(
    folder: Path, chosen: random.Random, size: Size
) -> tuple[Clone, str, list[str], dict[str, str]]:
    """A clone, its first commit, all later commits, and the faulty commit of each fault."""
    shutil.rmtree(folder, ignore_errors=True)
    made = Repository(folder)
    old, new = _python(BEFORE), _python(AFTER)
    first = made.begin(BEFORE, old)
    changed: dict[str, list[str]] = {}
    for path in new:
        if path not in old or old[path].read_bytes() != new[path].read_bytes():
            # One commit a package, because files of a package may need each other.
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
            path = chosen.choice([name for name in new if name.startswith("torch/_")])
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


def search(fault: str, seed: int, size: Size) -> Search:
    """Search for the fault once."""
    chosen = random.Random(f"{fault} {seed}")
    clone, first, later, faulty = _repository(FOLDER / "repository", chosen, size)
    everything = [first, *later]
    at = everything.index(faulty[fault])
    subjects = {commit: clone.subject(commit) for commit in everything}
    measurable = [
        place
        for place, commit in enumerate(everything)
        if subjects[commit] not in ("does not import", "other bindings")
    ]
    good = chosen.choice([place for place in measurable if place < at])
    bad = chosen.choice([place for place in measurable if place >= at])
    kept = FOLDER / "search.jsonl"
    kept.unlink(missing_ok=True)
    measuring = Measuring(clone, CELLS[fault], METRICS[fault], FOLDER, kept, plan=PLAN, repeats=0)
    started = time.monotonic()
    commits = everything[good : bad + 1]
    steps: list[Step] = []
    result: Result | None = None
    named = ""
    try:
        result = bisect(commits, measuring, steps.append)
        named = ", ".join(subjects[commit] for commit in result.suspects)
    except SuiteError as error:
        named = str(error)
    sides = Counter(step.side.value for step in steps)
    return Search(
        fault,
        seed,
        result is not None and result.suspects == [faulty[fault]],
        named,
        len(commits) - 1,
        dict(sides),
        [f"{subjects[step.commit]}: {step.reason}" for step in steps if step.side is Side.UNKNOWN],
        sum(len(launches) for launches in measuring.launches.values()),
        (math.nan, math.nan, math.nan) if result is None else result.factor,
        round(time.monotonic() - started, 1),
    )


def measure() -> None:
    """Make the missing searches."""
    known = {(done.fault, done.seed) for done in read_lines(KEPT, Search)}
    jobs = [
        (fault, seed) for seed in range(SEARCHES) for fault in METRICS if (fault, seed) not in known
    ]
    if not jobs:
        return
    for version in (BEFORE, AFTER):
        _python(version)
    shutil.rmtree(FOLDER / "environment", ignore_errors=True)
    os.environ.update(QUICKER)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    size = calibrate()
    print(size, flush=True)
    for fault, seed in jobs:
        done = search(fault, seed, size)
        append_line(KEPT, msgspec.json.encode(done))
        word = "right" if done.right else f"WRONG: {done.named}"
        print(f"{fault} {seed}: {word}, {done.launches} launches, {done.seconds} s", flush=True)
    shutil.rmtree(FOLDER)


def table() -> list[tables.Part]:
    """A line for each fault."""
    names = ["searches", "right", "bad over good", "commits measured", "skipped"]
    names += ["launches", "minutes", "s a commit"]
    lines = []
    for fault in METRICS:
        searches = [done for done in read_lines(KEPT, Search) if done.fault == fault]
        if not searches:
            continue
        measured = [done.sides.get("good", 0) + done.sides.get("bad", 0) for done in searches]
        factors = sorted(done.factor[0] for done in searches)
        commits = statistics.mean(done.commits for done in searches)
        seconds = [done.seconds for done in searches]
        lines.append(
            [
                fault,
                str(CELLS[fault]),
                str(len(searches)),
                str(sum(done.right for done in searches)),
                f"{factors[0]:.2f} to {factors[-1]:.2f}",
                f"{statistics.mean(measured):.1f} of {commits:.0f}",
                str(sum(done.sides.get("cannot tell", 0) for done in searches)),
                f"{statistics.mean(done.launches for done in searches):.0f}",
                f"{statistics.mean(seconds) / 60:.0f}",
                f"{sum(seconds) / sum(measured):.0f}",
            ]
        )
    return [
        f"Searches over {BEFORE} to {AFTER}, {COMMITS} commits. Commits, launches and minutes are "
        "means of a search.",
        Sheet(["fault", "cell", *names], frozenset(names), lines),
    ]


if __name__ == "__main__":
    tables.run("bisection", table, measure)
