"""When a launch asks what the compiler did: `Observed` for a cold launch, else `Unobserved`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from ... import workloads
from ...cell import Cell
from .. import progress
from ..device import Device
from ..stages import Stages
from ..subject import Call, Subject


class Inspection(Protocol):
    """Steps between the timed steps of a launch. None of them runs inside a timed region."""

    def before_compile(self, on: Device) -> None:
        """Nothing is compiled yet."""

    def after_compile(
        self, subject: Subject, forward: Any, on: Device, first_call_s: float
    ) -> None:
        """The first call in the mode has returned. Inside the subject's context."""

    def after_turns(self, subject: Subject, call: Call, forward: Any, on: Device) -> None:
        """All is timed, and nothing else has run. Still inside the subject's context."""

    def drawing(self, subject: Subject, /) -> AbstractContextManager[tuple[Call | None, str]]:
        """A call of a random function, whose compiled code draws the numbers that eager draws.

        Where there is none, None and the reason; no reason in a launch that does not ask.
        """

    def after_check(self, subject: Subject, forward: Any) -> None:
        """The outputs are right. Still inside the subject's context.

        Raises `failures.WrongResult` if the compiled module is wrong for other inputs.
        """

    def at_end(self) -> None:
        """Outside the subject's context."""


class Unobserved:
    """For launches that only time."""

    def before_compile(self, on: Device) -> None:
        """See `Inspection`."""

    def after_compile(
        self, subject: Subject, forward: Any, on: Device, first_call_s: float
    ) -> None:
        """See `Inspection`."""

    def after_turns(self, subject: Subject, call: Call, forward: Any, on: Device) -> None:
        """See `Inspection`."""

    def drawing(self, _: Subject) -> AbstractContextManager[tuple[Call | None, str]]:
        """See `Inspection`."""
        return nullcontext((None, ""))

    def after_check(self, subject: Subject, forward: Any) -> None:
        """See `Inspection`."""

    def at_end(self) -> None:
        """See `Inspection`."""


class Observed:
    """Fills the launch's field ``compiled``."""

    def __init__(self, cell: Cell, cache_dir: str, stages: Stages, fields: dict[str, Any]) -> None:
        """Start to observe the compiler. Imports it."""
        from .observe import Observer

        self._cell = cell
        self._stages = stages
        self._fields = fields
        self._observer = Observer(cell, Path(cache_dir))

    def before_compile(self, on: Device) -> None:
        """Start the measurement of the compiler's peak memory."""
        on.reset_peak_memory()

    def after_compile(
        self, subject: Subject, forward: Any, on: Device, first_call_s: float
    ) -> None:
        """Record the compiler's peak memory, the size of its cache, and what a second pass over a
        stream of shapes would compile.
        """
        self._observer.compiled_once(subject, forward, on.peak_memory_bytes())
        progress.learned(str(self._cell), f"the first compiled call took {first_call_s:.3g} s")

    def after_turns(self, subject: Subject, call: Call, forward: Any, on: Device) -> None:
        """Record graphs, guards and kernels.

        Before the accuracy check: FlexAttention also captures graphs when it runs in eager, and
        Dynamo has one set of counters for a process.
        """
        with self._stages("observe"):
            self._observer.ran(subject, call, forward, on)

    @contextmanager
    def drawing(self, subject: Subject) -> Iterator[tuple[Call | None, str]]:
        """Compile the subject once more. It is compiled before the seed is set, because autotuning
        draws random numbers, too.
        """
        from . import versions

        settings, why = versions.eager_draws(subject.module)
        if settings is None or self._cell.backend != "inductor":
            yield None, why
            return
        with settings:
            with self._stages("accuracy"):
                versions.reset()
                call, _ = subject.compile()
                call()
            yield call, ""

    def after_check(self, subject: Subject, forward: Any) -> None:
        """Check the workload's other inputs, and count what eager moves."""
        from . import capture

        cell, workload = self._cell, workloads.get(self._cell.workload)
        with self._stages("cases"):
            cases = workload.cases(cell.batch_size) if workload.cases else []
            capture.check_cases(forward, subject.module, cases, cell.device)
        with self._stages("traffic"):
            self._observer.checked(subject)

    def at_end(self) -> None:
        """Record what needs new captures: recaptures, artefacts, other capture methods."""
        with self._stages("recapture"):
            self._fields["compiled"] = self._observer.last(workloads.get(self._cell.workload))
