"""What the compiler did in a cold launch. Recorded between the timed steps and after them.

- ``observe``: what a cold launch asks, and when. ``capture`` and ``profiler``: the longer questions
- ``dynamo`` and ``inductor``: the compiler's private state, which differs from release to release;
  ``located``: where in the user's source it came from, for a contract
- ``artefacts``: what the compiler writes, as files for people
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..device import Device
    from ..subject import Call, Subject


class Inspection:
    """Steps between the timed steps of a launch. None of them runs inside a timed region.

    This class asks nothing, for launches that only time; see `observe.Observer`.
    """

    def before_compile(self, on: Device) -> None:
        """Nothing is compiled yet."""

    def after_compile(
        self, subject: Subject, forward: Any, on: Device, first_call_s: float
    ) -> None:
        """The first call in the mode has returned. Inside the subject's context."""

    def after_turns(self, subject: Subject, call: Call, forward: Any, on: Device) -> None:
        """All is timed, and nothing else has run. Still inside the subject's context."""

    @contextmanager
    def drawing(self, subject: Subject) -> Iterator[tuple[Call | None, str]]:  # noqa: ARG002
        """A call of a random function, whose compiled code draws the numbers that eager draws.

        Where there is none, None and the reason; no reason in a launch that does not ask.
        """
        yield None, ""

    def after_check(self, subject: Subject, forward: Any) -> None:
        """The outputs are right. Still inside the subject's context.

        Raises `failures.WrongResult` if the compiled module is wrong for other inputs.
        """

    def at_end(self) -> None:
        """Outside the subject's context."""
