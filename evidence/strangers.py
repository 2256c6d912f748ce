"""What does `try` say of models that nobody prepared, and what does a plain script say?

- `cases/`: 30 small models made after public bug reports, each with a habit of strangers' models.
- 40 architectures of timm, 10 of torchvision, 10 of transformers by configuration, without weights
  from a hub: in eval mode and, with ``--training``, an optimizer step.

    uv pip install torch==2.15.0 timm torchvision transformers -e .
    python -m evidence.strangers           # what is missing, then the tables of strangers.md
    python -m evidence.strangers --kept    # the tables of what is kept

Of the 60 modules the outcome counts and not the time, so `try` is interrupted after its first
launch, and a neighbour does no harm. The cases want a quiet machine.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import msgspec

from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.presentation.sheets import Sheet

from . import tables
from .cases.modules import FACTORIES, TIMM

RECORD = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).with_suffix(".md")
FOLDER = Path(__file__).with_name("cases")
CASES = sorted(FOLDER.glob("k*.py"))
MODULES = [*FACTORIES, *TIMM]
PLAIN = Path(__file__).with_name("plain") / "case.py"
# What the cases need beside the file.
OPTIONS = {"k03_dropout": ["--training"]}
LIMIT_S = 900
# Lines of a table, and of what stands beside it.
_DRAWN = set("┏┃┡│└")


class Said(msgspec.Struct, frozen=True):
    """What the command or the plain script printed of a model.

    - ``measured``: there was a ratio. ``exit``: the exit status.
    """

    name: str
    training: bool
    plain: bool
    measured: bool
    exit: int
    seconds: int
    said: list[str]


def _run(command: list[str], until: str) -> tuple[list[str], int, int]:
    """Lines, exit status, seconds. The command gets Ctrl-C at the line ``until``, or too late."""
    begun = time.monotonic()
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    stop = threading.Timer(LIMIT_S, running.send_signal, [signal.SIGINT])
    stop.start()
    said = []
    for line in running.stdout or ():
        said.append(line.rstrip())
        if until and re.search(until, line):
            running.send_signal(signal.SIGINT)
            until = ""
    stop.cancel()
    return said, running.wait(), round(time.monotonic() - begun)


def ask(name: str, target: str, options: list[str], whole: bool) -> Said:
    """What `try` says. ``whole``: after all launches, and else after the first one."""
    command = [sys.executable, "-m", "torchcompile_suite", "try", target, *options, "--no-color"]
    command += ["--budget", "1", "--precision", "1", "--allocator", "system"]
    said, status, seconds = _run(command, "" if whole else r"launch 1: .* of eager's time")
    measured = any("of eager's time" in line for line in said)
    return Said(name, "--training" in options, False, measured, status, seconds, said)


def plain(name: str, file: str, factory: str, training: bool) -> Said:
    """What the plain script says."""
    command = [sys.executable, str(PLAIN), file, factory, *(["training"] if training else [])]
    said, status, seconds = _run(command, "")
    return Said(name, training, True, any("ratio" in line for line in said), status, seconds, said)


def _kept() -> dict[tuple[str, bool, bool], Said]:
    """What is recorded, by name, training and plain."""
    return {(each.name, each.training, each.plain): each for each in read_lines(RECORD, Said)}


def measure() -> None:
    """Ask what is not kept yet: the cases, then the modules. A plain script follows each case, and
    each module without a ratio.
    """
    # In the background a shell has it ignored, and so would the command.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Path(tempfile.gettempdir(), "k30.txt").write_text("mine")  # k30 reads it
    kept = _kept()

    def keep(said: Said) -> None:
        append_line(RECORD, msgspec.json.encode(said))
        kept[said.name, said.training, said.plain] = said
        print(said.name, *said.said[-1:], f"({said.seconds} s)", flush=True)

    for case in CASES:
        options = OPTIONS.get(case.stem, [])
        training = "--training" in options
        if (case.stem, training, False) not in kept:
            keep(ask(case.stem, f"{case}:make", options, whole=True))
        if (case.stem, training, True) not in kept:
            keep(plain(case.stem, str(case), "make", training))
    for training in (False, True):
        options = ["--training"] if training else []
        for name in MODULES:
            target = f"{FOLDER / 'modules.py'}:{name}" if name in FACTORIES else name
            if (name, training, False) not in kept:
                keep(ask(name, target, options, whole=False))
            if not kept[name, training, False].measured and (name, training, True) not in kept:
                keep(plain(name, str(FOLDER / "modules.py"), name, training))


def verdict(said: Said) -> str:
    """The line of an answer that says whether it pays, or why nobody can tell."""
    lines = [line for line in said.said if line[:1] not in _DRAWN and not line.startswith("   ")]
    if said.plain:
        return "; ".join(line for line in lines if not line.startswith("W"))
    told = [line for line in lines if not re.match(r"\S+: .*, called with ", line)]
    return told[0] if told else "no answer"


def parts() -> list[tables.Part]:
    """The tables: the cases, then the modules."""
    kept = _kept()

    def told(name: str, training: bool, plain: bool) -> str:
        said = kept.get((name, training, plain))
        return verdict(said) if said else ""

    cases = [
        [case.stem, *(told(case.stem, case.stem in OPTIONS, plain) for plain in (False, True))]
        for case in CASES
    ]
    modules = []
    measured = {False: 0, True: 0}
    asked = {False: 0, True: 0}
    for training in (False, True):
        for name in MODULES:
            said = kept.get((name, training, False))
            if said is None:
                continue
            asked[training] += 1
            measured[training] += said.measured
            if not said.measured:
                step = "training" if training else "inference"
                modules.append([name, step, verdict(said), told(name, training, True)])
    counts = "; ".join(
        f"{'training' if training else 'inference'}: {measured[training]} of {asked[training]} "
        "have a ratio"
        for training in (False, True)
    )
    return [
        Sheet(["case", "what `try` says", "what a plain script says"], frozenset(), cases),
        f"Of the {len(MODULES)} modules, {counts}. Those without:",
        Sheet(["module", "call", "what `try` says", "plain script"], frozenset(), modules),
    ]


if __name__ == "__main__":
    tables.run("strangers", parts, measure, PAGE)
