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


# What other programs send, and a terminal that closes. Windows has one of them.
_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """Another program or a closed terminal ends this process, which stops as after Ctrl-C."""


def stop_in_order() -> None:
    """Let SIGTERM and SIGHUP stop this process as Ctrl-C does: it keeps its results, ends the
    processes that it has started, and removes its temporary folders. By default it would do nothing
    of that. A signal that it ignores (nohup) stays so.
    """
    for number in _ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)


def _terminate(_number: int, _frame: object) -> None:
    for number in _ENDS:  # a second one would interrupt the clean-up
        signal.signal(number, signal.SIG_IGN)
    raise Terminated
