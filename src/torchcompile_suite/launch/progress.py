"""How far a measuring process is: what it tells by itself, and what it answers.

- `Event`: something that happened to a cell, for the process that has a terminal.
- `Stages`: the stages of a launch.
- `Whereabouts`: its stage, and what compiles, for the driver that ends it. The driver sends `ASK`,
  and a handler in the process adds a line to a file. Where native code does not let Python's
  handlers run, `DUMP` makes faulthandler add the stack instead. That is safe only where the stack
  stands still, and the process is ended afterwards anyway. A launch of the usual length is never
  asked.

Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

Kind: TypeAlias = Literal["known", "started", "stage", "learned", "launched", "finished"]


class Event(msgspec.Struct, tag=True, frozen=True):
    """Something that happened to a cell.

    - ``known``: its workload was inspected.
    - ``started``: its measurement began.
    - ``stage``: a launch came to another stage.
    - ``learned``: a launch knows something before it ends.
    - ``launched``: a launch ended.
    - ``finished``: the cell is measured, or looked up, or failed.
    """

    cell: Annotated[str, msgspec.Meta(max_length=300)]
    text: str = ""
    kind: Kind = "started"


_hear: Callable[[Event], object] | None = None


def tell(event: Event) -> None:
    """Tell who listens, if anyone does. Never raises: progress must not cost a measurement.

    A measuring process has no terminal. Its listener sends the event to its driver, which tells it
    in turn (`engine.processes`).
    """
    if _hear is not None:
        with contextlib.suppress(Exception):
            _hear(event)


def note(kind: Kind, cell: str, text: str = "") -> None:
    """Tell that something happened to the cell: see `Event`."""
    tell(Event(cell, text, kind))


@contextlib.contextmanager
def listening(hear: Callable[[Event], object]) -> Iterator[None]:
    """Call ``hear`` with every event of this process, and of the processes that it drives, while
    entered.
    """
    global _hear
    before, _hear = _hear, hear
    try:
        yield
    finally:
        _hear = before


def rounded(seconds: float) -> float:
    """Six significant digits: finer than the noise of any clock, and half the bytes in a record."""
    return float(f"{seconds:.6g}")


class Stages:
    """Records the stages of a launch of one cell.

    - ``now``: the current stage. After an error it still names the stage that raised it.
    - ``seconds``: the time that each finished stage took, all its runs together.
    """

    def __init__(self, cell: str, prefix: str = "") -> None:
        """``cell``: the cell's name, and ``prefix``: what to write before a stage's name, for the
        progress display.
        """
        self._cell = cell
        self._prefix = prefix
        self.now = "start"
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Run the body as the stage of that name."""
        self.now = name
        note("stage", self._cell, self._prefix + name)
        entered(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = self.seconds.get(name, 0.0) + time.perf_counter() - start
            self.seconds[name] = round(seconds, 4)


# Names the file of the answers in the environment of a measuring process.
WHEREABOUTS = "TORCHCOMPILE_SUITE_WHEREABOUTS"
ASK = signal.SIGUSR1
DUMP = signal.SIGUSR2

# The stage now, and when it began. Until a launch has stages, the process imports.
_stage = ("import", time.monotonic())

# This one has the C++ compiler's frames inside, so it is looked for first.
_VECTORS = re.compile(r":(valid_vec_isa_list|check_build)$")
# What is at work, by the innermost frame that says so: its file, and its function.
_BUILDS = "compile_file|load_by_key_path|load_async|_load_library|wait|build"
_PHASES = [
    (
        rf"torch/_inductor/(cpp_builder|async_compile|compile_worker/|codecache\.py:({_BUILDS})$)",
        "compiling C++ or Triton",
    ),
    (r"torch/_inductor/runtime/|/triton/(compiler|backends)/", "compiling C++ or Triton"),
    (r"torch/_inductor/(scheduler|codegen/)", "Inductor's scheduling and code generation"),
    # AOTAutograd traces these.
    (
        r"torch/_inductor/(?!decomposition|codecache|utils|config|output_code)",
        "Inductor's lowering",
    ),
    (r"torch/_functorch/.*runtime_wrappers", "the compiled code's first call"),
    (r"torch/_functorch/(_aot_autograd/|aot_autograd|partitioners)", "AOTAutograd"),
    # These are around other phases as well.
    (r"torch/_dynamo/(?!utils|eval_frame|backends/)", "Dynamo's capture"),
]
# The steps of a launch, and their stages.
_STEPS = "torchcompile_suite/launch/measure.py"
_STAGES = {
    **{name: name for name in ("prepare", "build", "eager", "compile", "turns")},
    "warm_up": "warm-up",
}
_DUMPED = re.compile(r'File "(.+)", line \d+ in (\S+)')


class Whereabouts(msgspec.Struct, frozen=True):
    """Where a process is.

    - ``stage``, ``stage_s``: as in a launch's ``stages_s``, and seconds since it began.
    - ``phase``: what is at work while it compiles; empty if nothing is known.
    - ``graphs``, ``operators``, ``kernels``: compiled, captured and written so far.
    """

    stage: str
    stage_s: float
    phase: str = ""
    graphs: int = 0
    operators: int = 0
    kernels: int = 0


class Look(NamedTuple):
    """What the driver saw, and when (monotonic seconds)."""

    at: float
    seen: Whereabouts


def entered(stage: str) -> None:
    """The process comes to that stage."""
    global _stage
    _stage = (stage, time.monotonic())


def answer() -> None:
    """Answer a driver that wants to know, from now on. Its file says that it is so."""
    file = os.environ.pop(WHEREABOUTS, None)
    if file is None:
        return
    # Line by line. It stays open as long as the process.
    stream = Path(file).open("w", buffering=1)  # noqa: SIM115
    faulthandler.register(DUMP, stream, all_threads=False)

    def tell(_: int, frame: FrameType | None) -> None:
        with contextlib.suppress(Exception):
            stream.write(msgspec.json.encode(_now(frame)).decode() + "\n")

    signal.signal(ASK, tell)
    # Native code of a user's model must not meet a system call that was interrupted.
    signal.siginterrupt(ASK, False)
    stream.write("\n")


def captures() -> int:
    """Graphs that Dynamo has captured since its counters were cleared. It is imported.

    Each launch asks before its turns, and to import `inspect` takes memory that a user's script
    does not take.
    """
    return int(sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"])


def _counts() -> dict[str, int]:
    """Graphs and operators that Dynamo has captured, and kernels that Inductor has written."""
    # Not there before the compiler is imported, nor while it is.
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if counters is None:
        return {}
    operators = counters["stats"]["calls_captured"]
    kernels = getattr(sys.modules.get("torch._inductor.metrics"), "generated_kernel_count", 0)
    return {"graphs": captures(), "operators": int(operators), "kernels": int(kernels)}


def _now(frame: FrameType | None) -> Whereabouts:
    stage, begun = _stage
    frames = traceback.walk_stack(frame) if frame else ()
    places = ((one.f_code.co_filename, one.f_code.co_name) for one, _ in frames)
    return Whereabouts(stage, time.monotonic() - begun, phase(places), **_counts())


def phase(frames: Iterable[tuple[str, str]]) -> str:
    """What of the compiler works, by the files and functions on the stack, the innermost first."""
    places = [f"{file}:{function}" for file, function in frames]
    if any(map(_VECTORS.search, places)):
        return "asking the C++ compiler which instructions the CPU has"
    return next(
        (text for place in places for pattern, text in _PHASES if re.search(pattern, place)), ""
    )


def read(answers: str, last: Look | None) -> Whereabouts | None:
    """The last answer in the file's text; None if there is none.

    A stack that faulthandler wrote has at most a hundred frames. Where ours is not among them, it
    belongs to the stage of the ``last`` look.
    """
    found: Whereabouts | None = None
    for line in answers.splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            found = msgspec.json.decode(line, type=Whereabouts)
    dumped = _DUMPED.findall(answers)
    if found is None and dumped:
        steps = (name for file, name in dumped if file.endswith(_STEPS))
        ours = (_STAGES[name] for name in steps if name in _STAGES)
        stage = next(ours, last.seen.stage if last else "native code")
        found = Whereabouts(stage, 0.0)
        if last and last.seen.stage == stage:
            stage_s = last.seen.stage_s + time.monotonic() - last.at
            found = msgspec.structs.replace(last.seen, stage_s=stage_s)
        found = msgspec.structs.replace(found, phase=phase(dumped))
    return found


def told(looks: list[Look]) -> str:
    """How far the process came, in words; empty if it was never seen."""
    if not looks:
        return ""
    end, seen = looks[-1]
    text = f"the last {seen.stage_s:.0f} s" if seen.stage_s >= 1 else "the end"
    text += f" in {seen.stage}"
    if seen.stage != "compile":
        return text
    if seen.phase:
        text += f", at the end in {seen.phase}"
        same = end
        for at, earlier in reversed(looks):
            if (earlier.stage, earlier.phase) != (seen.stage, seen.phase):
                break
            same = at
        if end - same >= 1:
            text += f" (for at least {end - same:.0f} s)"
    counts = [
        f"{number} {name}{'' if number == 1 else 's'}"
        for number, name in (
            (seen.graphs, "finished graph"),
            (seen.operators, "operator"),
            (seen.kernels, "kernel"),
        )
        if number
    ]
    return f"{text}; so far {', '.join(counts)}" if counts else text
