"""What a launch asks Dynamo, and what Dynamo says when it leaves code to eager, torch 2.4 to 2.15.

Private state of the compiler is read here, in `inductor` and `located`, in `generate.hooks` and
`generate.absent`, in `launch.prepare`, and for counters in `launch.progress`. Each function works
with all releases of the ledger; tests/test_compiled.py runs them with the oldest release and the
newest one. Import this only where the compiler is needed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from unittest import mock

import torch
import torch._dynamo
import torch._dynamo.config
import torch._dynamo.convert_frame
import torch._dynamo.output_graph
import torch._dynamo.utils
import torch._inductor.metrics
from torch._dynamo.exc import SkipFrame, Unsupported

from ...compiled import GraphBreak
from ...host.places import without
from ..progress import captures as captures  # since `reset`

# With this stance, a call raises an error that names the stance, instead of compiling.
STANCE = "fail_on_recompile"
# Dynamo skips what it cannot capture, without a word.
NO_GRAPH = "nothing of it was compiled: 0 graphs"
_MOST_REASONS = 3
# torch keeps 64 metrics of compiled frames, and forgets the oldest.
MOST_FRAMES = 100_000

LENGTH = 300
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# The texts of newer releases: a title, an explanation, hints, a context and a link.
_EXPLANATION = re.compile(r"Explanation: (.*?)(?:\n\s*Hint: |\n\s*\n|\Z)", re.DOTALL)
# What says only that there is a reason, which follows.
_PADDING = re.compile(r"Dynamo determined that a graph break should occur when calling .*?Reason: ")
_LINK = re.compile(r"https://\S+/gb(\d+)\.html")
_IN_LOOP = "graph break in a for/while loop"
_GIVEN_UP = re.compile(r"WON'T CONVERT (\S+) (.+?) line (\d+)")
# A line of a stack, as text.
FRAME = re.compile(r'File "(?P<filename>.+)", line (?P<lineno>\d+)')
_CODE = re.compile(rf"{FRAME.pattern}, in \S+\s*(?P<code>[^\n]*)")
_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Failed|Unsupported): .+)$", re.MULTILINE)


def reset() -> None:
    """Drop all captures and counters, as in a new process."""
    torch._dynamo.reset()
    start_counting()


def start_counting() -> None:
    """Drop all counters, and no capture. FlexAttention captures graphs when it runs in eager."""
    torch._dynamo.utils.counters.clear()
    torch._dynamo.output_graph.graph_break_reasons.clear()
    torch._dynamo.utils.clear_compilation_metrics()
    torch._dynamo.utils.set_compilation_metrics_limit(MOST_FRAMES)
    torch._inductor.metrics.reset()


def refusing_to_capture() -> Callable[[], AbstractContextManager[Any]] | None:
    """Makes contexts in which a call that needs a new capture raises RuntimeError with `STANCE`.

    None in releases before `torch.compiler.set_stance`. To make a context is to enter it: the
    stance is set at once.
    """
    set_stance = getattr(torch.compiler, "set_stance", None)
    return None if set_stance is None else functools.partial(set_stance, STANCE)


def innermost_line(stack: str) -> str:
    """The innermost frame of a node's stack trace, as ``file.py:line: code``; empty without one."""
    frames = list(_CODE.finditer(stack))
    if not frames:
        return ""
    last = frames[-1]
    code = last["code"].strip().removeprefix("code: ")[:LENGTH]
    return f"{Path(last['filename']).name}:{last['lineno']}: {code}"


def more_captures(times: int) -> AbstractContextManager[Any]:
    """A context in which Dynamo captures a function so many times as often before it gives up."""
    config = torch._dynamo.config
    # In 2.4 to 2.5 it has its old name, which is an alias later.
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    return config.patch({name: times * getattr(config, name)})  # type: ignore[no-any-return]


def operators() -> int:
    """Calls in the captured graphs."""
    return int(torch._dynamo.utils.counters["stats"]["calls_captured"])


def graph_break(dynamos: Any) -> GraphBreak:
    """A graph break of Dynamo's: its reason in one line, and the user's innermost frame."""
    return GraphBreak(one_line(str(dynamos.reason)), place(list(dynamos.user_stack or ())))


def graph_breaks() -> list[GraphBreak]:
    """All graph breaks, without duplicates."""
    return list(dict.fromkeys(map(graph_break, torch._dynamo.output_graph.graph_break_reasons)))


def frames() -> list[Any]:
    """The compilation metrics of all compiled frames."""
    return [
        metrics
        for metrics in torch._dynamo.utils.get_compilation_metrics()
        # The entries of the backward pass have no frame.
        if getattr(metrics, "co_name", None) and not getattr(metrics, "fail_type", None)
    ]


def guards() -> int:
    """Guards of all captured frames."""
    return sum(frame.guard_count or 0 for frame in frames())


def recompiles() -> int:
    """Captures of frames whose code was captured before."""
    captured = [
        (frame.co_filename, frame.co_firstlineno, frame.co_name)
        for frame in frames()
        if frame.graph_op_count
    ]
    return len(captured) - len(set(captured))


def guard_check(module: torch.nn.Module, inputs: Any) -> Callable[[], object] | None:
    """A function that checks the guards of the module's forward; None if Dynamo has not captured
    the forward as a frame.

    ``inputs``: the inputs of a call, a tuple by position or a dict by name.
    """
    managers = _guard_managers(module)
    if not managers:
        return None
    forward = type(module).forward
    signature = inspect.signature(forward, follow_wrapped=False)
    given = signature.bind(module, **inputs) if isinstance(inputs, dict) else None
    bound = given or signature.bind(module, *inputs)
    bound.apply_defaults()
    code = forward.__code__
    # A frame's locals include the variables that the function closes over.
    cells = forward.__closure__ or ()
    local = dict(bound.arguments)
    local |= {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
    return lambda: managers[0].check(local)


def _guard_managers(module: torch.nn.Module) -> list[Any]:
    """The guard manager of each graph captured from the module's forward.

    In 2.4 the attribute of Dynamo's cache entries is ``check_fn``.
    """
    # A forward that is no plain function, such as a partialmethod, has no code of its own.
    code = getattr(type(module).forward, "__code__", None)
    if code is None:
        return []
    entries = torch._dynamo.eval_frame._debug_get_cache_entry_list(code)
    return [getattr(entry, "guard_manager", None) or entry.check_fn for entry in entries]


def guard_texts(module: torch.nn.Module) -> list[str]:
    """The guards of each graph captured from the module's forward, as torch prints them."""
    return [str(manager) for manager in _guard_managers(module)]


Hook: TypeAlias = Callable[..., Any]


def hooked(owner: Any, name: str, hook: Hook) -> Callable[..., Any]:
    """What to put in the place of a function of a module, or of a method: it calls the hook with
    the original and its arguments.
    """
    original = getattr(owner, name)

    @functools.wraps(original)
    def instead(*arguments: Any, **options: Any) -> Any:
        return hook(original, *arguments, **options)

    return instead


@contextlib.contextmanager
def hooking(hooks: Iterable[tuple[Any, str, Hook]]) -> Iterator[None]:
    """A context with hooks in place of functions: owner, name, and hook of each (`hooked`)."""
    with contextlib.ExitStack() as stack:
        for owner, name, hook in hooks:
            stack.enter_context(mock.patch.object(owner, name, hooked(owner, name, hook)))
        yield


@contextlib.contextmanager
def watch_recompiles() -> Iterator[list[GraphBreak]]:
    """A context with a list to which each recompile adds its failed guard and its function.

    Dynamo computes the reasons even if it does not log them. If a function has several cached
    graphs, the first reason is taken. The name of Dynamo's function is plural since 2.5.
    """
    recompiled: list[GraphBreak] = []
    owner = torch._dynamo.convert_frame
    name = "get_and_maybe_log_recompilation_reason"
    name = name if hasattr(owner, name) else name + "s"

    def note(original: Any, entries: Any, frame: Any, *arguments: Any, **options: Any) -> Any:
        reasons = original(entries, frame, *arguments, **options)
        # 2.9 to 2.11 ask again at each capture, also at the first, where they inline no modules.
        if options.get("skip_logging"):
            return reasons
        code = frame.f_code
        where = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        reason = str(reasons[0]).strip().splitlines()[0][:300] if reasons else ""
        recompiled.append(GraphBreak(reason, where))
        return reasons

    with hooking([(owner, name, note)]):
        yield recompiled


class Captures(logging.Handler):
    """What Dynamo captures over many calls, from the creation on."""

    def __init__(self) -> None:
        """Listen to what Dynamo says when it reaches a limit of recompiles."""
        super().__init__()
        self._said = ""
        logging.getLogger("torch._dynamo.convert_frame").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first line of the first warning: it names the limit in all releases."""
        text = record.getMessage()
        if "torch._dynamo hit config." in text:
            self._said = self._said or text.splitlines()[0][:300]

    def fields(self) -> dict[str, Any]:
        """Of `Growth`. The limit is how many graphs Dynamo keeps of one function: 2.4 to 2.6 know
        it by its older name only.
        """
        config = torch._dynamo.config
        name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
        return {"graphs": captures(), "limit": int(getattr(config, name)), "at_limit": self._said}


def one_line(text: str) -> str:
    """The title and what it says of this code, without padding, hints and addresses.

    PyTorch's id of the reason and its link follow, where the release has one.
    """
    lines = text.strip().strip("'\"").splitlines()
    if not lines:
        return ""
    title = lines[0].strip()
    if explained := _EXPLANATION.search(text):
        title = f"{title}: {_PADDING.sub('', ' '.join(explained[1].split()))}"
    title = _ADDRESS.sub("", without(title, str(Path(torch.__file__).parents[1])))
    link = _LINK.search(text)
    end = f" (GB{link[1]}, {link[0]})" if link else ""
    return _shortened(title, LENGTH - len(end)) + end


def _shortened(text: str, length: int) -> str:
    """The text, or as many of its sentences as fit."""
    if len(text) <= length:
        return text
    sentences = text[: length + 1].rpartition(". ")[0]
    return f"{sentences}." if sentences else f"{text[: length - 3]}..."


def place(frames: Sequence[Any]) -> str:
    """``file.py:line`` of the innermost frame that is not torch's own; empty if there is none."""
    own = f"{Path(torch.__file__).parent}/"
    users = [frame for frame in frames if not frame.filename.startswith(own)]
    return f"{Path(users[-1].filename).name}:{users[-1].lineno}" if users else ""


def skip(text: str) -> str:
    """Why a graph runs without CUDA graphs, and the user's line, in one line.

    The stack follows the reason in further lines, where torch knows it.
    """
    reason, _, stack = text.strip().partition("Found from")
    reason = reason.partition("\n")[0].rstrip(" .")[:LENGTH]
    where = place([SimpleNamespace(**frame.groupdict()) for frame in FRAME.finditer(stack)])
    return f"{reason} ({where})" if where else reason


class GivenUp(logging.Handler):
    """Frames that Dynamo gave up and left to eager, without a graph break.

    Counters have most of the reasons. As a context it also listens: an error that
    ``suppress_errors`` hides is in the log only, and in 2.4 to 2.10 a frame counts as converted
    although a break in a loop has left it to eager.
    """

    def __init__(self) -> None:
        """Nothing is heard yet."""
        super().__init__()
        # What cannot be traced: the reason, and the stack, outermost call first.
        self.untraced: list[tuple[str, Sequence[Any]]] = []
        # Why Dynamo has skipped frames, each reason once.
        self.skipped: dict[str, None] = {}
        self._said: list[GraphBreak] = []
        self._in_loops: set[str] = set()
        self._watchers = contextlib.ExitStack()

    def __enter__(self) -> GivenUp:
        """Listen from now on."""
        logging.getLogger("torch._dynamo.convert_frame").addHandler(self)

        def adding(add: Any, error: Unsupported, *arguments: Any, **options: Any) -> Any:
            self.untraced.append((one_line(str(error.msg)), error.real_stack or ()))
            return add(error, *arguments, **options)

        def making(make: Any, error: SkipFrame, *arguments: Any, **options: Any) -> None:
            text = str(*arguments[:1])
            self.skipped[one_line(text)] = None
            if self.untraced and _IN_LOOP in text:
                self._in_loops.add(self.untraced[-1][0])
            make(error, *arguments, **options)

        hooks = [(Unsupported, "add_to_stats", adding), (SkipFrame, "__init__", making)]
        self._watchers.enter_context(hooking(hooks))
        return self

    def __exit__(self, *_: object) -> None:
        """Hear nothing more. What was heard is kept."""
        self._watchers.close()
        logging.getLogger("torch._dynamo.convert_frame").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what the record says of a frame."""
        text = record.getMessage()
        if found := _GIVEN_UP.search(text):
            if record.exc_info and record.exc_info[1] is not None:
                text = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            errors = _ERROR.findall(text)
            reason = one_line(errors[-1]) if errors else "Dynamo names no reason"
            self._said.append(GraphBreak(reason, f"{Path(found[2]).name}:{found[3]}"))

    def frames(self) -> list[GraphBreak]:
        """One entry for each reason; empty if Dynamo converted all frames that it met."""
        counters = torch._dynamo.utils.counters
        tried, converted = counters["frames"]["total"], counters["frames"]["ok"]
        if tried <= converted and not self._in_loops:
            return []
        breaks = {
            str(each.reason).strip() for each in torch._dynamo.output_graph.graph_break_reasons
        }
        counted = [
            (one_line(str(text)), count)
            for kind in ("unimplemented", "graph_break")
            for text, count in counters[kind].items()
            if count > 0
            if str(text).strip() not in breaks or one_line(str(text)) in self._in_loops
        ]
        places: dict[str, list[str]] = {}
        for reason, stack in self.untraced:
            places.setdefault(reason, []).append(place(stack))
        again = "Dynamo gives up and tries again in later calls, {} times so far: "
        found = [
            GraphBreak((again.format(count) if count > 1 else "") + reason, where)
            for reason, count in counted
            for where in places.get(reason, [""])
        ]
        return list(dict.fromkeys([*found, *self._said]))


def why_uncaptured(call: Callable[[], Any]) -> str:
    """Why Dynamo captured no graph, so that the "compiled" module ran in eager, in one line.

    It says nothing about it: it skips the frame. For example, Inductor does not compile bfloat16 on
    a GPU before Ampere. So the call is made once more, and Dynamo is listened to while it skips.
    All captures are dropped before, so nothing can be measured afterwards. Only a call without any
    graph is made twice: to listen from the start would cost time in all others.
    """
    for variable in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"):
        if os.environ.get(variable) == "1":
            return f"{variable}=1 is set"
    reset()
    with GivenUp() as given_up:
        call()
    said = given_up.skipped
    for each in (*graph_breaks(), *given_up.frames()):
        said[f"{each.reason} ({each.where})" if each.where else each.reason] = None
    return "; ".join(list(filter(None, said))[:_MOST_REASONS]) or "Dynamo names no reason"
