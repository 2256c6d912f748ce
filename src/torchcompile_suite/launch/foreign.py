"""How a user's model has to be called: found out by calling it in eager, before anything is timed.

Models of the suite are known. A user's model may need gradients inside forward, may change its
inputs, or may keep something of each call. If it fails later, `explained` says whether it fails in
eager, too.
"""

from __future__ import annotations

import functools
import gc
import inspect
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from .. import workloads
from ..cell import Cell
from ..measurement import CALLED_UNDER, Outcome, Status
from ..workloads import WorkloadError
from . import failures, original, values
from .build import build
from .subject import CONTEXTS, Subject

# What a subject calls its module with.
_INPUTS = ("inputs", "requests")
# Calls between two looks at the memory. A model that has kept more each time is taken to go on so;
# one that keeps its last few results ends to grow.
GROWING_CALLS = (1, 1, 1, 5, 8, 16, 32, 64, 128)
# The looks end after so many seconds of calls or bytes, too.
GROWING_S = 4.0
GROWING_BYTES = 1 << 30
# After so many calls, each time four times as many, the calls are compared. If they took longer by
# this factor both times, they go on so.
SLOWING_CALLS = (16, 64, 256)
SLOWER = 1.3
# A new subject has to be faster by the same factor in so many turns of `SLOWING_CALLS[0]` calls.
SLOWING_TURNS = 3


def learn(subject: Subject, steady: bool = True) -> list[str]:
    """Call the subject in eager, and arrange how it is called from now on.

    ``steady``: also look whether the calls have a steady state, for which it is called again.
    Returns what a reader has to know, one line each. Raises the model's own error if it does not
    run at all, WorkloadError if it cannot run in eager, and `failures.Unsettled` if each call keeps
    more than the one before.
    """
    before = _given(subject)
    restore = functools.partial(_restore, subject, before)
    # Those of the CPU. To look at a GPU's would start CUDA in a process that measures the CPU.
    with torch.random.fork_rng(devices=[]):
        notes = _find_context(subject, restore)
        changing = any(values.changed(getattr(subject, name), before[name]) for name in before)
        # What forward has made may be a tensor of inference mode, which only that mode changes.
        with subject.context():
            resetting = original.reset(subject.module)
            if changing:
                restore()
        if changing:
            _keep_inputs(subject, restore)
            notes.append(
                "each call changes its inputs: all calls, eager and compiled, got them as the "
                "factory gave them, copied outside the clock, and each call was waited for"
            )
        elif resetting:
            _keep_inputs(subject, lambda: original.reset(subject.module))
        if resetting:
            notes.append(
                "the factory's reset was called after each call, eager and compiled, outside the "
                "clock, and each call was waited for"
            )
        if steady:
            notes += _refuse_unsettled(subject)
    return notes


def _given(subject: Subject) -> dict[str, Any]:
    """Copies of what the subject calls its module with. Raises WorkloadError if there are none."""
    names = [name for name in _INPUTS if hasattr(subject, name)]
    try:
        return {name: values.copied(getattr(subject, name)) for name in names}
    except Exception as error:
        if failures.is_out_of_memory(error):
            raise
        raise WorkloadError(
            f"the inputs cannot be copied ({failures.said(error)}), and all calls need the same "
            "ones: give tensors, or objects that copy.deepcopy copies"
        ) from error


def _restore(subject: Subject, given: Mapping[str, Any]) -> None:
    """Let the next call find the inputs and the state of the first one."""
    for name, value in given.items():
        setattr(subject, name, values.copied(value))
    original.reset(subject.module)


def _find_context(subject: Subject, restore: Callable[[], None]) -> list[str]:
    """Call the subject once in the first context in which it runs. Returns notes."""
    errors: list[Exception] = []
    forget = _attributes(subject.module)
    for name in CONTEXTS if subject.cell.phase == "inference" else ["grad"]:
        subject.gradients = name
        try:
            with subject.context():
                original.refuse_compiled(subject.module, subject.eager)
        except WorkloadError:
            raise
        except Exception as error:
            errors.append(error)
            # What the failed call has kept may be a tensor of inference mode.
            forget()
            restore()
            continue
        if not errors:
            return []
        how = "torch.no_grad()" if name == "no-grad" else "no context, with gradients"
        reason = failures.said(errors[0])
        return [f"{CALLED_UNDER}{how}: torch.inference_mode(), which is usual, fails ({reason})"]
    raise errors[0]


def _attributes(module: torch.nn.Module) -> Callable[[], None]:
    """A function that gives all parts of the module the attributes and buffers that they have now.

    Nothing is copied: a copy of a large buffer would change the heap that is measured.
    """
    held = [
        (names, dict(names))
        for part in module.modules()
        for names in (vars(part), part._buffers)
        if isinstance(names, dict)  # TorchScript has its own kind
    ]

    def forget() -> None:
        for names, before in held:
            names.clear()
            names.update(before)

    return forget


def _keep_inputs(subject: Subject, restore: Callable[[], object]) -> None:
    """Let each call find the inputs as the user gave them. What it makes of them is compared with
    its outputs.
    """
    compile_it, apart, in_double = subject.compile, subject.apart, subject.in_double
    left: list[Any] = []

    def put_back() -> None:
        left[:] = [subject.given()]
        restore()

    def compile_restoring() -> tuple[Any, Any]:
        call, forward = compile_it()
        return values.Restoring(call, put_back), forward

    def in_double_from_copies(module: Any, given: Any) -> list[Any]:
        own = values.copied(given)
        return [*in_double(module, own), values.opened(own)]

    # On the object: all others, and all of the suite's workloads, keep the plain methods.
    vars(subject).update(
        compile=compile_restoring,
        apart=lambda result: [*apart(result), values.opened(left)],
        in_double=in_double_from_copies,
        fresh_inputs=True,
        baseline=values.Restoring(subject.baseline, put_back),
        eager=values.Restoring(subject.eager, put_back),
    )


def _refuse_unsettled(subject: Subject) -> list[str]:
    """Raise `failures.Unsettled` if each call keeps more memory in tensors, or takes longer.

    Returns a note if there was no time for all looks: a model may end to grow.
    """
    named = _sizes(subject.module)
    with subject.context():
        more, notes = _growth(subject)
        slowing = "" if more or notes else _slowing(subject)
    if slowing and _slower_than_new(subject):
        more = f"takes longer than the last ({slowing})"
    if more:
        raise failures.Unsettled(_growing(subject.module, named, more))
    return notes


def _growth(subject: Subject) -> tuple[str, list[str]]:
    """What each call keeps in addition, and notes; both empty if the calls stop to keep more."""
    sizes = [_live_bytes()]
    seconds = 0.0
    for count in GROWING_CALLS:
        seconds += sum(_call_s(subject) for _ in range(count))
        sizes.append(_live_bytes())
        if sizes[-1] <= sizes[-2]:
            return "", []
        if sizes[-1] - sizes[0] > GROWING_BYTES:
            break
        if seconds > GROWING_S and count != GROWING_CALLS[-1]:
            return "", ["each of the first calls kept more memory: there may be no steady state"]
    return f"keeps {(sizes[-1] - sizes[-2]) // count:,} bytes more", []


def _slowing(subject: Subject) -> str:
    """How long the first and the last calls took, if each takes longer than the last; else empty.

    Long calls are not made so often: what they keep is in tensors, which `_growth` sees.
    """
    shortest_s: list[float] = []
    made = 0
    deadline = time.perf_counter() + GROWING_S
    for until in SLOWING_CALLS:
        calls_s = []
        for _ in range(until - made):
            calls_s.append(_call_s(subject))
            if time.perf_counter() > deadline:
                return ""
        made = until
        # The shortest of the last calls: a neighbour slows some, and seldom all of them.
        shortest_s.append(min(calls_s[-SLOWING_CALLS[0] :]))
        if len(shortest_s) > 1 and shortest_s[-1] < SLOWER * shortest_s[-2]:
            return ""
    first, *_, last = (f"{each * 1e6:,.0f} us" for each in shortest_s)
    return f"{first} after {SLOWING_CALLS[0]} calls, {last} after {made}"


def _slower_than_new(subject: Subject) -> bool:
    """Whether the calls take longer than those of a new subject of the cell, in turns.

    A machine that became slower meanwhile slows both: the model has a steady state.
    """
    try:
        new = build(subject.cell)
        learn(new, steady=False)
    except Exception:
        return False  # nothing to compare with
    for _ in range(SLOWING_TURNS):
        shortest_s = []
        for each in (subject, new):
            with each.context():
                shortest_s.append(min(_call_s(each) for _ in range(SLOWING_CALLS[0])))
        if shortest_s[0] < SLOWER * shortest_s[1]:
            return False
    return True


def _call_s(subject: Subject) -> float:
    start = time.perf_counter()
    subject.eager()
    return time.perf_counter() - start


def _growing(module: torch.nn.Module, named: dict[str, int], more: str) -> str:
    """Why there is no steady state: what each call does more, and what of the module grows."""
    grown = [name for name, size in _sizes(module).items() if size > named.get(name, 0)]
    where = f" in {', '.join(grown[:3])}" if grown else ""
    if grown and (place := _place(module, grown[0])):
        where += f" ({place})"
    return (
        f"each call {more}{where}: there is no steady state to time; let forward keep nothing, "
        "give it a fixed size, or return (model, inputs, reset) from the factory"
    )


def _place(module: torch.nn.Module, grown: str) -> str:
    """File and line where the module changes what grows; empty if that is not found."""
    path, _, name = grown.rpartition(".")
    changes = re.compile(rf"\.{re.escape(name)}\s*(\.\w+\(|\[|[-+*|]?=[^=])")
    try:
        forward = inspect.unwrap(type(module.get_submodule(path)).forward)
        lines, first = inspect.getsourcelines(forward)
    except (OSError, TypeError, AttributeError):
        return ""
    at = next((number for number, line in enumerate(lines, first) if changes.search(line)), None)
    return f"{Path(inspect.getfile(forward)).name}:{at}" if at else ""


def _live_bytes() -> int:
    """Bytes of all tensors that Python knows. Those that share a storage count once."""
    gc.collect()
    storages: dict[int, int] = {}
    for value in gc.get_objects():
        if issubclass(type(value), torch.Tensor):
            try:
                storage = value.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
            except (RuntimeError, NotImplementedError, ValueError):
                continue  # sparse, fake, or not made yet
    return sum(storages.values())


def _sizes(module: torch.nn.Module) -> dict[str, int]:
    """What the module holds that can grow, by name: lengths of containers, numbers in tensors."""
    return {
        f"{path}.{name}".lstrip("."): value.numel() if torch.is_tensor(value) else len(value)
        for path, part in module.named_modules()
        for name, value in {**vars(part), **part._buffers}.items()
        if not name.startswith("_")
        and (torch.is_tensor(value) or isinstance(value, (list, dict, set)))
    }


# Calls and seconds for the search.
MOST_CALLS = 100_000
LIMIT_S = 30.0
# The stages in which the module is called again and again.
_STAGES = ("eager", "warm-up", "memory", "turns", "eager calls", "calls")


def explained(cell: Cell, outcome: Outcome, stage: str) -> Outcome:
    """The outcome of a launch that failed in that stage; of the module if eager fails as well.

    Builds the cell once more and calls it in eager until it fails. Never raises.
    """
    if outcome.status is not Status.CRASH or stage not in _STAGES:
        return outcome
    if not workloads.get(cell.workload).foreign:
        return outcome
    try:
        reason = _failing_call(cell)
    except Exception:
        return outcome
    return Outcome(Status.CRASH, reason) if reason else outcome


def _failing_call(cell: Cell) -> str:
    subject = build(cell)
    given = _given(subject)
    deadline = time.perf_counter() + LIMIT_S
    with torch.set_grad_enabled(cell.phase == "training"):
        for number in range(1, MOST_CALLS + 1):
            try:
                subject.eager()
            except Exception as error:
                if number == 1:
                    return ""
                return (
                    f"the module itself fails at call {number}, in eager, too: "
                    f"{failures.said_where(error)}; give make() inputs or a state that can be "
                    "called as often as you like, or let it return (model, inputs, reset): reset() "
                    "is called after each call"
                )
            if time.perf_counter() > deadline:
                break
            _restore(subject, given)
    return ""
