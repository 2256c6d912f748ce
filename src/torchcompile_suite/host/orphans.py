"""Ends a process when its parent process has ended."""

from __future__ import annotations

import os
import signal
import threading
import time

# The process that watches its parent. A fork has the variable, and not the thread.
_watching = 0


def die_with_parent() -> None:
    """End this process soon after its parent ends, with its process group if it leads one.

    A thread checks the parent once a second. This works on all systems and is too rare to change a
    measurement. Another call in the same process changes nothing.
    """
    global _watching
    if _watching == os.getpid():
        return
    _watching = os.getpid()
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="die-with-parent", daemon=True).start()
