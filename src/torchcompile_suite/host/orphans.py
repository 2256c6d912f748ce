"""A process that ends when the process that started it is killed."""

from __future__ import annotations

import os
import signal
import threading
import time


def die_with_parent() -> None:
    """End this process, and its group if it leads one, soon after its parent ends.

    Polls from a thread: portable, and one look a second costs a measurement nothing.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="die-with-parent", daemon=True).start()
