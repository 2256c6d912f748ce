"""What a lent GPU is asked, in parts of some minutes; each part is useful alone.

    python3 -m evidence.gpu.campaign A --out FOLDER [--seconds 450] [--device cpu]

A: one cold launch of each kind of cell that meets another part of the device path. B: proofs of how
a call is timed, counted and disturbed, beside scripts that do not import the suite. C: the cells
that decide what the documents claim, as results. D: what was generated for a GPU that is not here,
beside what the device ran (needs no GPU). W: where the time of some calls goes, beside a script.

A part begins with what tells most, and ends when its seconds are over. FOLDER gets ``log.jsonl``, a
line for each step, and ``results.tar`` with the segments of this machine. Run it in the root of the
checkout; `prepare` has to have fetched the wheels before, where there is a network.
"""

from __future__ import annotations

from . import prepare

if __name__ == "__main__":
    prepare.activate()

import argparse
import functools
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from torchcompile_suite import matrix
from torchcompile_suite.cell import DEFAULT_HEAP, Cell
from torchcompile_suite.engine import launches
from torchcompile_suite.engine.alone import Alone
from torchcompile_suite.engine.processes import HERE
from torchcompile_suite.engine.series import Series
from torchcompile_suite.engine.settings import Settings
from torchcompile_suite.host import machine
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Launch, Measurement
from torchcompile_suite.releases import ledger
from torchcompile_suite.request import Plan
from torchcompile_suite.results import records, sealing

LAUNCHES = 3
PLAIN = Path(__file__).with_name("plain") / "calls.py"
PLAIN_KERNELS = PLAIN.with_name("kernels.py")
# What the proofs and the plain scripts compare.
MODES = ("eager", "default", "reduce-overhead")
# Models of the plain script, in each of these modes.
PLAIN_CELLS = [
    (name, mode) for name in ("vit16x6x384", "softmax_matmul", "resnet18") for mode in MODES
]


def _modes(workload: str, *modes: str) -> list[Cell]:
    return [Cell(workload, 1, mode) for mode in modes]


# One launch each: every kind of cell, those first of which least is known.
KINDS = [
    Cell("gpt_prefill", 1, "reduce-overhead", shapes="recompile"),
    Cell("attention_flex_512", 1, "default"),
    Cell("resnet18", 1, "default", way="freezing"),
    Cell("vit16x6x384", 1, "default", way="regional"),
    Cell("softmax_matmul", 1, "default", allocator=DEFAULT_HEAP, protocol="many-calls"),
    Cell("softmax_matmul", 1, "default", start="aot-package"),
    Cell("resnet18", 4, "reduce-overhead", phase="training", accumulation=4),
    Cell("branch_on_value", 1, "reduce-overhead"),
    Cell("resnet18", 1, "eager"),
    Cell("resnet18", 1, "default", protocol="no-sync"),
    Cell("vit16x6x384", 1, "default", dtype="bfloat16", baseline="eager-float32"),
    Cell("gpt_prefill", 1, "default", shapes="dynamic"),
    Cell("resnet18", 4, "default", phase="training"),
    Cell("softmax_matmul", 1, "max-autotune"),
    Cell("gpt_decode", 1, "max-autotune"),
    Cell("resnet18", 1, "max-autotune"),
]
# What the documents claim of a GPU, and of any device.
CLAIMED = [
    *_modes("vit16x6x384", "default", "reduce-overhead"),
    *_modes("vit32x12x768", "default", "reduce-overhead"),
    *_modes("vit32x18x1024", "default", "reduce-overhead"),
    *_modes("softmax_matmul", "default"),
    *_modes("gpt_decode", "default", "reduce-overhead"),
    *_modes("resnet18", "default", "reduce-overhead"),
    Cell("operator_stochastic", 5, "max-autotune"),
    *_modes("operator_stochastic", "default"),
    *_modes("relevance_information", "default", "reduce-overhead"),
    *_modes("relevance_salience", "default"),
    # One mode more of a vit: four claims wait for it.
    *_modes("vit16x6x384", "max-autotune"),
    *_modes("entropy_in_memory", "default"),
    matrix.PRECISION.cell("operator_stochastic", 1, "eager"),
    *_modes("operator_groupnorm", "default"),
    *_modes("operator_12_layers", "default"),
    matrix.TRAINING.cell("operator_stochastic", "default", "float32", 1),
    *_modes("resnet50", "default", "reduce-overhead"),
    *_modes("branch_on_value", "default"),
    matrix.TRAINING.cell("relevance_information", "default", "bfloat16", 1),
    matrix.TRAINING.cell("relevance_information", "default", "float32", 1),
    *_modes("relevance_salience", "reduce-overhead"),
    *_modes("relevance_query", "default", "reduce-overhead"),
    *_modes("vit32x12x768", "max-autotune"),
    *_modes("vit32x18x1024", "max-autotune"),
]
# A measurement takes about so many seconds, and none begins with less.
LEAST_S = 45.0
# The answer of a program is kept as data. So much of what it printed is kept beside it.
MOST_TEXT = 2000
LAUNCH_LIMIT_S = 240.0
# A stranger's way in: the command, on a model that is no workload.
TRY = ["try", "resnet101", "--mode", "default", "--mode", "reduce-overhead", "--save", "--quiet"]

# What `why` is asked, and the models and modes of the plain script beside it.
WHY = [
    ["resnet18"],
    ["gpt_decode"],
    ["resnet18", "--training", "--batch-size", "4"],
    ["resnet18", "--mode", "reduce-overhead"],
    ["vit16x6x384"],
]
WHY_PLAIN = [("resnet18", "default"), ("resnet18", "reduce-overhead")]


class Step(msgspec.Struct, omit_defaults=True):
    """A line of the log: what was done, in how many seconds, and what came of it."""

    text: str
    part: str = ""
    name: str = ""
    seconds: float = 0.0
    cell: Cell | None = None
    launch: Launch | None = None
    data: dict[str, Any] = {}


class Campaign:
    """The parts, and where their results go."""

    def __init__(
        self, out: Path, device: str, seconds: float, plan: Plan, leave_out: int = 0
    ) -> None:
        """Write to ``out``. No step begins shortly before that many ``seconds`` are over, nor the
        first ones, which are to be left out because another call has made them.
        """
        self.out = out.absolute()
        self.device = device
        self.plan = plan
        self._leave_out = leave_out
        self._deadline = time.monotonic() + seconds
        self._log = self.out / "log.jsonl"
        # Not the checkout's results: what is brought back is what was measured here.
        self._folder = tempfile.TemporaryDirectory(prefix="campaign-")
        self.work = Path(self._folder.name)

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self._deadline - time.monotonic()

    def step(self, part: str, name: str, work: Callable[[], Step]) -> None:
        """Do the work and log what it says; a failure is a line of the log, too."""
        if self._leave_out > 0:
            self._leave_out -= 1
            return
        if self.left_s < LEAST_S:
            print(f"no time for {name}", flush=True)
            return
        start = time.monotonic()
        try:
            done = work()
        except Exception as error:
            done = Step(f"{type(error).__name__}: {error}")
        done.part, done.name = part, name
        done.seconds = round(time.monotonic() - start, 1)
        append_line(self._log, msgspec.json.encode(done))
        print(f"{done.seconds:6.1f} s  {name}: {done.text}", flush=True)

    def launch(self, cell: Cell) -> Step:
        """One cold launch of the cell."""
        cell = msgspec.structs.replace(cell, device=self.device)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            cache = Path(folder, "cache")
            series = Series(cell, (), plan=self.plan, launch_limit_s=LAUNCH_LIMIT_S)
            made = launches.of_series(HERE, series, cache)
        return Step(launch_text(made), cell=cell, launch=made)

    def measure(self, cell: Cell) -> Step:
        """A measurement of the cell, as a result of this machine."""
        settings = Settings(
            launches=LAUNCHES,
            # The machine is lent for minutes.
            repeats=min(1, Settings.from_environment().repeats),
            launch_limit_s=LAUNCH_LIMIT_S,
            plan=self.plan,
        )
        cell = msgspec.structs.replace(cell, device=self.device)
        measured = Alone(HERE, settings, self._journal()).measure(cell)
        self._pack()
        return Step(measurement_text(measured), cell=measured.cell, launch=measured.launches[0])

    def _journal(self) -> Path:
        import torch

        release = torch.__version__.partition("+")[0]
        folder = self.work / "results" / machine.detect().machine
        machine.keep(folder, machine.fields(folder.name))
        return records.path(folder, ledger.commit_of()[release], records.TRIAL)

    def program(self, *command: str, read: Callable[[str], Any] | None = None) -> Step:
        """Run a program of this Python in the working folder; ``read`` takes what it prints."""
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=LAUNCH_LIMIT_S,
        )
        if done.returncode:
            return Step(f"exit status {done.returncode}: {done.stderr.strip()[-2000:]}")
        if read is None:
            return Step(f"ok\n{done.stdout}")
        return Step(done.stdout.strip()[:MOST_TEXT], data=read(done.stdout))

    def close(self) -> None:
        """Seal the results, and pack them for the way back."""
        results = self.work / "results"
        for folder in sorted(results.glob("*/")):
            for problem in sealing.seal(folder).problems:
                print(f"not sealed: {problem}", flush=True)
        self._pack()

    def _pack(self) -> None:
        # After each measurement: the machine may be taken away at any moment.
        results = self.work / "results"
        if results.exists():
            with tarfile.open(self.out / "results.tar", "w") as tar:
                tar.add(results, "results")


def launch_text(made: Launch) -> str:
    """A launch in a line: its outcome, or its figures."""
    if not made.outcome.ok:
        return str(made.outcome)
    if not made.pairs_s:
        return "ok, nothing timed"
    text = f"{_pair(made.pairs_s)} of eager's time"
    return f"{text}; a call alone {_pair(made.latency_s)}" if made.latency_s else text


def _pair(pairs_s: list[tuple[float, float]]) -> str:
    eager, mode = (median(side) for side in zip(*pairs_s, strict=True))
    return f"{eager * 1e6:.1f} and {mode * 1e6:.1f} us, {mode / eager:.3f}"


def measurement_text(measured: Measurement) -> str:
    """A measurement in a line: its outcome, or the figures of each launch."""
    if not measured.outcome.ok:
        return str(measured.outcome)
    return " | ".join(launch_text(launch) for launch in measured.launches)


def kinds(campaign: Campaign) -> None:
    """A: one cold launch of each kind of cell."""
    doctor = functools.partial(campaign.program, "-m", "torchcompile_suite", "doctor")
    campaign.step("A", "doctor", doctor)
    for cell in KINDS:
        campaign.step("A", str(cell), functools.partial(campaign.launch, cell))


def proofs(campaign: Campaign) -> None:
    """B: what the device says of itself, how it is counted, and scripts without the suite."""
    for name in ("device", "memory", "activities", "calibration"):
        command = ("-m", "evidence.gpu.proofs", name, campaign.device)
        work = functools.partial(campaign.program, *command, read=msgspec.json.decode)
        campaign.step("B", name, work)
    for model, mode in PLAIN_CELLS:
        work = functools.partial(
            campaign.program, str(PLAIN), model, mode, campaign.device, read=_microseconds
        )
        campaign.step("B", f"plain {model} {mode}", work)


def _microseconds(printed: str) -> dict[str, float]:
    names = ("one after the other", "alone", "by events", "once more")
    return dict(zip(names, map(float, printed.split()), strict=True))


def claimed(campaign: Campaign) -> None:
    """C: the cells that decide claims, then a model that is no workload."""
    for cell in CLAIMED:
        campaign.step("C", str(cell), functools.partial(campaign.measure, cell))
    command = ["-m", "torchcompile_suite", *TRY, "--device", campaign.device]
    campaign.step("C", " ".join(TRY), functools.partial(campaign.program, *command))


def counts(campaign: Campaign) -> None:
    """D: what this torch generates for the target, beside what the device ran in the other parts.

    Only where the log of the other parts has the cell, from a device with a time line.
    """
    for step in read_lines(campaign.out / "log.jsonl", Step):
        if step.cell is None or step.launch is None or step.launch.compiled is None:
            continue
        if step.launch.compiled.profile is None or step.cell.way != "whole" or step.cell.start:
            continue
        campaign.step("D", str(step.cell), functools.partial(_counted, step.cell, step.launch))


def _counted(cell: Cell, ran: Launch) -> Step:
    compiled = ran.compiled
    assert compiled is not None
    assert compiled.profile is not None
    wanted = msgspec.structs.replace(cell, device="cpu", target=matrix.GENERATED_TARGET)
    made = launches.of_series(HERE, Series(wanted, ()), Path())
    if made.generated is None:
        return Step(str(made.outcome))
    total = made.generated.total
    calls = compiled.profile.calls
    data = {
        "generated": {
            "Triton kernels": total("triton_kernels"),
            "launches": total("launches"),
            "bytes": total("bytes_after"),
            "launches with CUDA graphs": total("launches_with_cuda_graphs"),
        },
        "Inductor's metrics": {
            "Triton kernels": compiled.kernels,
            "launches": compiled.launches,
            "bytes": compiled.bytes_after,
        },
        "time line": {
            "kernels": compiled.profile.kernels / calls,
            "launches": compiled.profile.kernel_launches / calls,
        },
    }
    return Step(msgspec.json.encode(data).decode(), data=data)


def divided(campaign: Campaign) -> None:
    """W: where the time of a call goes, and what a plain script sees of it."""
    for asked in WHY:
        command = ["-m", "torchcompile_suite", "why", *asked, "--launches", "1"]
        command += ["--device", campaign.device, "--quiet", "--json", "-"]
        work = functools.partial(campaign.program, *command, read=_divided)
        campaign.step("W", f"why {' '.join(asked)}", work)
    for model, mode in WHY_PLAIN:
        work = functools.partial(
            campaign.program, str(PLAIN_KERNELS), model, mode, read=msgspec.json.decode
        )
        campaign.step("W", f"kernels of {model} {mode}", work)


def _divided(printed: str) -> dict[str, Any]:
    """Of an answer of `why` the seconds of both calls, and those of families of the same name."""
    said = msgspec.json.decode(printed)
    families: dict[str, list[float]] = {}
    for one in said["families"]:
        before_s, after_s = families.get(one["what"], [0.0, 0.0])
        families[one["what"]] = [before_s + one["before_s"][0], after_s + one["after_s"][0]]
    call_s = [side["launches"][0]["call_s"] for side in said["calls"]]
    return {"call_s": call_s, "families": families}


PARTS = {"A": kinds, "B": proofs, "C": claimed, "D": counts, "W": divided}


def main() -> None:
    """Do a part, or some, one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", choices=PARTS, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument("--device", default="cuda", choices=machine.DEVICES)
    parser.add_argument(
        "--from", dest="first", type=int, default=0, help="leave out that many steps"
    )
    parser.add_argument("--quick", action="store_true", help="time hardly anything: a rehearsal")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    plan = Plan(min_pairs=2, min_timed_s=0.1, max_timed_s=0.5) if asked.quick else Plan()
    campaign = Campaign(asked.out, asked.device, asked.seconds, plan, asked.first)
    try:
        for part in asked.parts:
            PARTS[part](campaign)
    finally:
        campaign.close()


if __name__ == "__main__":
    main()
