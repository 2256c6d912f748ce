"""Other programs, run to their end, and what another program does to end this one."""

from __future__ import annotations

import functools
import signal
import subprocess
from collections.abc import Callable

# Nothing is on the program's standard input unless ``input`` says so. Its exit status is the
# caller's to judge.
run: Callable[..., subprocess.CompletedProcess[str]] = functools.partial(
    subprocess.run, input="", capture_output=True, encoding="utf-8", errors="replace", check=False
)


class Terminated(KeyboardInterrupt):
    """SIGTERM: another program ends this one, which stops as after Ctrl-C."""


def stop_in_order() -> None:
    """Let SIGTERM stop this process as Ctrl-C does: it keeps its results, ends the processes that
    it has started, and removes its temporary folders. By default it would do nothing of that.
    """
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated
