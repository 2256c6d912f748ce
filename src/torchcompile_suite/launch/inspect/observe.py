"""What the compiler captured and generated in a cold launch, as a `Compiled`.

Nothing here may change a time or make a measurement fail. Watching the compiler costs microseconds
a graph. Everything else is asked after the turns. A value that a release does not report is None,
with a reason.
"""

from __future__ import annotations

import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ... import workloads
from ...cell import Cell
from ...compiled import Compiled
from ...workloads import Workload
from .. import caches, failures, ways
from ..device import Device
from ..precision import autocast
from ..stream import ShapeStream
from ..subject import Call, Subject
from . import artefacts, capture, profiler, share, versions
from .traffic import Traffic
from .versions import reasons

GUARD_CHECKS = 1000
# What `_traffic` counts, by attribute of `Compiled`.
TRAFFIC = ("eager_operators", "eager_bytes")


class Observer:
    """Watches the compiler from its creation on, and fills a `Compiled`."""

    def __init__(self, cell: Cell, cache: Path) -> None:
        """Start to watch. ``cache``: Inductor's cache folder."""
        self._cell = cell
        self._cache = cache
        versions.start_counting()
        self._skips = versions.watch_cudagraph_skips()
        self._recompiles = versions.watch_recompiles()
        self._given_up = reasons.GivenUp()
        self._generated = versions.watch_generation()
        # By attribute of `Compiled`.
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
            value, otherwise = None, failures.one_line(f"{type(error).__name__}: {error}")
        if value is None:
            self._unknown[field] = otherwise
        else:
            self._values[field] = value

    def compiled_once(self, subject: Subject, forward: Any, peak_memory_bytes: int | None) -> None:
        """The first call has returned. ``peak_memory_bytes``: the peak during the call."""
        self._values["peak_memory_bytes"] = peak_memory_bytes
        self._ask("cache_bytes", lambda: caches.size(self._cache))
        if isinstance(subject, ShapeStream):
            self._refuse("tail", lambda: capture.refused(subject, forward, subject.requests))

    def _refuse(self, name: str, ask: Callable[[], int | None]) -> None:
        """Keep how many requests `capture.refused` counts, among the recaptures of that name."""
        field = f"recaptures.{name}"
        without = versions.refusing_to_capture() is None
        reason = "this release has no torch.compiler.set_stance" if without else "no such request"
        self._ask(field, ask, reason)
        if field in self._values:
            self._recaptures[name] = self._values.pop(field)

    def ran(self, subject: Subject, call: Call, forward: Any, on: Device) -> None:
        """All is compiled and timed. Ask what has to be asked inside the subject's context."""
        self._ask("graphs", versions.captures)
        self._ask("operators", versions.operators)
        self._ask("graph_breaks", versions.graph_breaks)
        self._ask("skipped", self._given_up.frames)
        self._ask("guards", versions.guards)
        self._ask("recompiles", versions.recompiles)
        self._values["recompile_reasons"] = list(self._recompiles)
        if self._cell.phase == "inference":
            self._ask("phases_s", versions.phases)
        else:
            self._unknown["phases_s"] = "the backward pass is compiled apart, under the same timers"
        self._values["cudagraph_skips"] = sorted(set(self._skips))
        self._ask(
            "guard_check_s",
            lambda: _guard_check_s(self._cell, getattr(forward, "_orig_mod", forward), subject),
            "the module's forward was not captured as a frame of its own",
        )
        if self._cell.way in ("regional", "nested-region"):
            self._values["blocks"] = len(ways.repeated_blocks(subject.module))
        generated = vars(self._generated)
        if self._cell.backend != "inductor":
            reason = f"backend {self._cell.backend} generates no code"
            self._unknown |= dict.fromkeys(generated, reason)
        elif served := versions.served_from_cache():
            reason = (
                f"{served} graphs equal another one, whose code they share without generating it"
            )
            self._unknown |= dict.fromkeys(generated, reason)
        else:
            self._values |= generated
        if isinstance(subject, ShapeStream):
            # Last of what the compiler's counters tell: new shapes come after all others.
            self._refuse("new shapes", lambda: capture.refused(subject, forward, subject.unseen()))
        if on.kind == "cpu":
            self._unknown["profile"] = "a CPU has no queue to profile"
        else:
            self._ask(
                "profile",
                lambda: profiler.profile(call, on.synchronize),
                "the profiler saw nothing on the device; its counters may need permission",
            )

    def checked(self, subject: Subject) -> None:
        """The outputs are right. Count what eager moves, after all else that calls eager.

        FlexAttention cannot run in a dispatch mode. In torch 2.9 it cannot run afterwards either:
        Dynamo keeps what it has captured until the error.
        """
        self._ask("traffic", lambda: _traffic(subject.eager))
        self._values |= self._values.pop("traffic", {})
        if reason := self._unknown.pop("traffic", None):
            self._unknown |= dict.fromkeys(TRAFFIC, reason)
        # Last: it drops all captures. Of the suite's own models the graphs are known.
        if workloads.get(self._cell.workload).foreign and self._cell.way == "whole":
            self._ask("captured_share", lambda: share.captured(subject), "no operator was called")

    def last(self, workload: Workload) -> Compiled:
        """Ask what needs new captures, last and outside any context. Returns all values."""
        batch_size = self._cell.batch_size
        if workload.has_tag("guards"):
            self._ask("captured", lambda: capture.recaptures(workload, batch_size))
            counts, reasons = self._values.pop("captured", ({}, {}))
            self._recaptures |= counts
            self._unknown |= reasons
            self._ask("artefacts", lambda: _artefacts(self._cell))
        if workload.has_tag("tracing"):
            self._ask("tracing", lambda: capture.tracing(workload, batch_size))
        self._values["recaptures"] = self._recaptures
        unknown = {Compiled.published_name(name): why for name, why in self._unknown.items()}
        return Compiled(**self._values, unknown=unknown)


def _artefacts(cell: Cell) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="artefacts-") as folder:
        return artefacts.write(cell, Path(folder))


def _guard_check_s(cell: Cell, module: torch.nn.Module, subject: Subject) -> float | None:
    """Seconds to check the guards of one call: the minimum of a few rounds, as timeit advises.

    ``module``: the one that was compiled, which may be a twin of the subject's (`ways.twin`).
    """
    check = versions.guard_check(module, subject.inputs)
    with autocast(cell):
        if check is None or not check():
            return None
        rounds = timeit.repeat(check, number=GUARD_CHECKS, repeat=5)
    return float(f"{min(rounds) / GUARD_CHECKS:.4g}")


def _traffic(eager: Call) -> dict[str, int]:
    with Traffic() as traffic:
        eager()
    return dict(zip(TRAFFIC, (traffic.operators, traffic.bytes), strict=True))
