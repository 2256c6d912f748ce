"""``python -m torchcompile_suite.launch --connection FD``: one measuring process of a launch.

`measuring.processes.Fresh` starts it, and talks with it over the inherited file descriptor FD. To
make a whole launch from a script: ``python -m torchcompile_suite.measuring.launches``.

This process ends when its parent process ends. The output of torch and of compilers goes where its
stdout and stderr go.
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing.connection import Connection

from ..host.orphans import die_with_parent
from .entry import work

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One measuring process of a launch.")
    parser.add_argument("--connection", type=int, required=True)
    connection = Connection(parser.parse_args().connection)
    # A user's file may read them.
    del sys.argv[1:]
    die_with_parent()
    work(connection, "fresh")
