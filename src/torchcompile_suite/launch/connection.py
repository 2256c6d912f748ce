"""The connection of a process to the one that has started it (`engine.processes.spawn`)."""

from __future__ import annotations

import argparse
import sys
from multiprocessing.connection import Connection

from ..host.orphans import die_with_parent


def accept() -> Connection:
    """Take the connection that the command line names: ``--connection FD``.

    From now on this process ends when its parent ends, and a user's file finds no arguments.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--connection", type=int, required=True)
    connection = Connection(parser.parse_args().connection)
    del sys.argv[1:]
    die_with_parent()
    return connection
