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
# What `try` said before it was mended, as the report that brought the cases has it.
BEFORE = {
    "k01_changes_input": "compile it: 0.69, of values that became infinite or gone",
    "k02_gate": "wrong-result: random gates",
    "k03_dropout": "wrong-result, and so with 4 other sets of weights",
    "k04_wrong_and_random": "ok: 40 % wrong, and as far from itself",
    "k05_compiled_inside": "do not compile it: both sides ran compiled",
    "k06_nothing_compiled": "do not compile it: 1.80, of nothing compiled",
    "k07_runs_out": "crash: while in turns",
    "k08_no_grad_in_forward": "fails under inference mode",
    "k09_half_weights": "wrong-result: 0.0038 exceeds 0.0001",
    "k10_only_float32": "fails in the float64 reference",
    "k11_index_by_rounding": "wrong-result: another shape",
    "k12_start_method": "fails: the start method is set already",
    "k13_registers_once": "fails: registered twice",
    "k14_argv": "fails: unrecognized arguments: --connection 4",
    "k15_train_returns_none": "AttributeError of the suite",
    "k16_script_inside": "do not compile it, of nothing compiled",
    "k17_sparse_input": "an error without a form to return",
    "k18_state_hides_error": "ok: 40 % wrong",
    "k19_compiled_part": "compile it: 0.82, for the remainder",
    "k20_int8_already": "1.46; --question quantisation compared it with itself",
    "k21_slow_compile": "timeout, without how far it came",
    "k22_retries": "fails under inference mode",
    "k23_cache_folder": "a second run's cold start was warm",
    "k24_no_elements": "ended without a word",
    "k25_gru": "the general remedy",
    "k26_grows": "unsettled, with a text about malloc",
    "k27_print": "the general remedy",
    "k28_triton": "AttributeError of the suite",
    "k29_mutated_input": "as k01; --target claimed CUDA graphs",
    "k30_tmp": "its folder for temporary files was another one",
}
# Whole on the page, as a newcomer reads them.
TRANSCRIPTS = (
    *("k01_changes_input", "k04_wrong_and_random", "k05_compiled_inside", "k06_nothing_compiled"),
    *("k07_runs_out", "k19_compiled_part", "k24_no_elements", "k26_grows", "fasterrcnn", "gpt2"),
)
LIMIT_S = 900
# What the command says of a launch that has a ratio. A table has such words, too.
_OF_LAUNCH = r"launch \d+: .* of eager's time"
# How the plain script's own lines begin: the model may print others.
_OF_SCRIPT = r"(eager|compiled|graphs|after \d+ calls): |\{|ratio "
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
    said, status, seconds = _run(command, "" if whole else _OF_LAUNCH)
    measured = any(re.search(_OF_LAUNCH, line) for line in said)
    return Said(name, "--training" in options, False, measured, status, seconds, said)


def plain(name: str, file: str, factory: str, training: bool) -> Said:
    """What the plain script says."""
    command = [sys.executable, str(PLAIN), file, factory, *(["training"] if training else [])]
    said, status, seconds = _run(command, "")
    said = list(dict.fromkeys(said))  # a model that prints says the same thousands of times
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
    # Neither tables nor the lines of the progress, which begin with seconds.
    lines = [
        line
        for line in said.said
        if line[:1] not in _DRAWN and not re.match(r"\s{3}|\s*\d+ s  ", line)
    ]
    if said.plain:
        return "; ".join(line for line in lines if re.match(_OF_SCRIPT, line))
    told = [line for line in lines if not re.match(r"\S+: .*, called with ", line)]
    return told[0] if told else "no answer"


def parts() -> list[tables.Part]:
    """The tables: the cases, then the modules."""
    kept = _kept()

    def told(name: str, training: bool, plain: bool) -> str:
        said = kept.get((name, training, plain))
        return verdict(said) if said else ""

    cases = [
        [
            case.stem,
            BEFORE[case.stem],
            *(told(case.stem, case.stem in OPTIONS, plain) for plain in (False, True)),
        ]
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
        Sheet(["case", "before", "what `try` says", "a plain script"], frozenset(), cases),
        f"Of the {len(MODULES)} modules, {counts}. Those without:",
        Sheet(["module", "call", "what `try` says", "plain script"], frozenset(), modules),
        "Ten transcripts, whole:",
        *(
            f"`try {name}`:\n\n```text\n" + "\n".join(kept[name, False, False].said) + "\n```"
            for name in TRANSCRIPTS
            if (name, False, False) in kept
        ),
    ]


if __name__ == "__main__":
    tables.run("strangers", parts, measure, PAGE)
