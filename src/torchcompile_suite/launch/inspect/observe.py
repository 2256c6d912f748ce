"""What the compiler captured and generated in a cold launch, as a `Compiled`.

Nothing here may change a time or make a measurement fail. Watching the compiler costs microseconds
a graph. Everything else is asked after the turns. A value that a release does not report is None,
with a reason.
"""

from __future__ import annotations

import tempfile
import timeit
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ... import workloads
from ...cell import Cell
from ...compiled import Compiled
from ...modes import GRAPH_MODES
from .. import caches, failures, progress
from ..device import Device
from ..forward import autocast
from ..progress import Stages
from ..stream import ShapeStream
from ..subject import Call, Subject, repeated_blocks
from ..values import Restoring
from ..widened import Traffic
from . import Inspection, artefacts, capture, dynamo, inductor, profiler

GUARD_CHECKS = 1000
# What `_traffic` counts, by field of `Compiled`.
TRAFFIC = ("eager_operators", "eager_bytes")


class Observer(Inspection):
    """Watches the compiler from its creation on, and fills the launch's field ``compiled``."""

    def __init__(self, cell: Cell, cache: str, stages: Stages, fields: dict[str, Any]) -> None:
        """Start to watch. ``cache``: Inductor's cache folder. ``fields``: of the launch."""
        self._cell = cell
        self._workload = workloads.get(cell.workload)
        self._cache = Path(cache)
        self._stages = stages
        self._fields = fields
        dynamo.start_counting()
        # Until the process ends.
        self._watchers = ExitStack()
        watch = self._watchers.enter_context
        self._skips = watch(inductor.watch_cudagraph_skips())
        self._recompiles = watch(dynamo.watch_recompiles())
        self._given_up = watch(dynamo.GivenUp())
        self._generated = watch(inductor.watch_generation())
        # By field of `Compiled`.
        self._values: dict[str, Any] = {}
        self._unknown: dict[str, str] = {}
        self._recaptures: dict[str, int] = {}

    def _ask(self, field: str, ask: Callable[[], Any], otherwise: str = "") -> None:
        """Keep the value that ``ask`` returns. If it is None, keep the reason ``otherwise``; if
        ``ask`` raises, keep the error as the reason.
        """
        try:
            value = ask()
        except Exception as error:
            value, otherwise = None, failures.said(error)
        if value is None:
            self._unknown[field] = otherwise
        else:
            self._values[field] = value

    def before_compile(self, on: Device) -> None:
        """Start the measurement of the compiler's peak memory."""
        on.reset_peak_memory()

    def after_compile(
        self, subject: Subject, forward: Any, on: Device, first_call_s: float
    ) -> None:
        """Record the compiler's peak memory, the size of its cache, and what a second pass over a
        stream of shapes would compile.
        """
        self._values["peak_memory_bytes"] = on.peak_memory_bytes()
        self._ask("cache_bytes", lambda: caches.size(self._cache))
        if isinstance(subject, ShapeStream):
            if on.kind != "cpu" and self._cell.mode in GRAPH_MODES:
                # What that costs belongs to the warm-up.
                self._unknown["recaptures.tail"] = "a second pass records CUDA graphs"
            else:
                self._refuse("tail", lambda: capture.refused(subject, forward, subject.requests))
                if isinstance(subject.eager, Restoring):
                    subject.eager.restore()  # each of them was served once more
        text = f"the first compiled call took {first_call_s:.3g} s"
        progress.note("learned", str(self._cell), text)

    def _refuse(self, name: str, ask: Callable[[], int | None]) -> None:
        """Keep how many requests `capture.refused` counts, among the recaptures of that name."""
        field = f"recaptures.{name}"
        without = dynamo.refusing_to_capture() is None
        reason = "this release has no torch.compiler.set_stance" if without else "no such request"
        self._ask(field, ask, reason)
        if field in self._values:
            self._recaptures[name] = self._values.pop(field)

    def after_turns(self, subject: Subject, call: Call, forward: Any, on: Device) -> None:
        """Record graphs, guards and kernels.

        Before the accuracy check: FlexAttention also captures graphs when it runs in eager, and
        Dynamo has one set of counters for a process.
        """
        with self._stages("observe"):
            self._ran(subject, call, forward, on)

    def _ran(self, subject: Subject, call: Call, forward: Any, on: Device) -> None:
        self._ask("graphs", dynamo.captures)
        self._ask("operators", dynamo.operators)
        self._ask("graph_breaks", dynamo.graph_breaks)
        self._ask("skipped", self._given_up.frames)
        self._ask("guards", dynamo.guards)
        self._ask("recompiles", dynamo.recompiles)
        self._values["recompile_reasons"] = list(self._recompiles)
        if self._cell.phase == "inference":
            self._ask("phases_s", inductor.phases)
        else:
            self._unknown["phases_s"] = "the backward pass is compiled apart, under the same timers"
        self._values["cudagraph_skips"] = sorted(set(self._skips))
        self._ask(
            "guard_check_s",
            lambda: guard_check_s(forward, subject),
            "the module's forward was not captured as a frame of its own",
        )
        if self._cell.way in ("regional", "nested-region"):
            self._values["blocks"] = len(repeated_blocks(subject.module))
        generated, unknown = self._generated.known()
        if self._cell.backend != "inductor":
            reason = f"backend {self._cell.backend} generates no code"
            self._unknown |= dict.fromkeys((*generated, *unknown), reason)
        elif served := inductor.served_from_cache():
            reason = f"graphs with the code of an equal one, without generating it: {served}"
            self._unknown |= dict.fromkeys((*generated, *unknown), reason)
        else:
            self._values |= generated
            self._unknown |= unknown
        if isinstance(subject, ShapeStream):
            # Last of what the compiler's counters tell: new shapes come after all others.
            self._refuse("new shapes", lambda: capture.refused(subject, forward, subject.unseen()))
        if on.kind == "cpu":
            self._unknown["profile"] = "a CPU has no queue to profile"
        elif isinstance(call, Restoring):
            self._unknown["profile"] = "the copies that put changed inputs back would be counted"
        else:
            self._ask(
                "profile",
                lambda: profiler.profile(call, on.synchronize),
                "the profiler saw nothing on the device; its counters may need permission",
            )

    @contextmanager
    def drawing(self, subject: Subject) -> Iterator[tuple[Call | None, str]]:
        """Compile the subject once more. It is compiled before the seed is set, because autotuning
        draws random numbers, too.
        """
        settings, why = inductor.eager_draws(subject.module)
        if settings is None or self._cell.backend != "inductor":
            yield None, why
            return
        with settings:
            with self._stages("accuracy"):
                dynamo.reset()
                call, _ = subject.compile()
                call()
            yield call, ""

    def after_check(self, subject: Subject, forward: Any) -> None:
        """Check the workload's other inputs, and count what eager moves."""
        with self._stages("cases"):
            capture.check_cases(forward, subject.module, self._workload, self._cell)
        with self._stages("traffic"):
            self._count_traffic(subject)

    def _count_traffic(self, subject: Subject) -> None:
        """Count what eager moves, after all else that calls eager.

        FlexAttention cannot run in a dispatch mode. In torch 2.9 it cannot run afterwards either:
        Dynamo keeps what it has captured until the error.
        """
        self._ask("traffic", lambda: _traffic(subject.eager))
        self._values |= self._values.pop("traffic", {})
        if reason := self._unknown.pop("traffic", None):
            self._unknown |= dict.fromkeys(TRAFFIC, reason)
        # Last: it drops all captures. Of the suite's own models the graphs are known.
        if self._workload.foreign and self._cell.way == "whole":
            self._ask("captured_share", lambda: capture.share(subject), "no operator was called")

    def at_end(self) -> None:
        """Record what needs new captures: recaptures, artefacts, other capture methods."""
        workload, batch_size = self._workload, self._cell.batch_size
        with self._stages("recapture"):
            if workload.has_tag("guards"):
                self._ask("captured", lambda: capture.recaptures(workload, batch_size))
                counts, unknown = self._values.pop("captured", ({}, {}))
                self._recaptures |= counts
                self._unknown |= unknown
                self._ask("artefacts", lambda: _artefacts(self._cell))
            if workload.has_tag("tracing"):
                self._ask("tracing", lambda: capture.tracing(workload, batch_size))
            self._fields["compiled"] = Compiled(
                **self._values, recaptures=self._recaptures, unknown=self._unknown
            )


def _artefacts(cell: Cell) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="artefacts-") as folder:
        return artefacts.write(cell, Path(folder))


def guard_check_s(forward: Any, subject: Subject) -> float | None:
    """Seconds to check the guards of one call: the minimum of a few rounds, as timeit advises.

    ``forward``: what was compiled, which may be of a twin of the subject's module (`subject.twin`).
    """
    check = dynamo.guard_check(getattr(forward, "_orig_mod", forward), subject.inputs)
    with autocast(subject.cell):
        if check is None or not check():
            return None
        rounds = timeit.repeat(check, number=GUARD_CHECKS, repeat=5)
    return float(f"{min(rounds) / GUARD_CHECKS:.4g}")


def _traffic(eager: Call) -> dict[str, int]:
    # Copies that restore the inputs are the suite's.
    call = eager.inner if isinstance(eager, Restoring) else eager
    try:
        with Traffic() as traffic:
            call()
    finally:
        if isinstance(eager, Restoring):
            eager.restore()
    return dict(zip(TRAFFIC, (traffic.operators, traffic.bytes), strict=True))
