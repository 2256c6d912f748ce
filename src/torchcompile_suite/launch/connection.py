"""What a process has of the one that has started it: `engine.processes.spawn`."""

from __future__ import annotations

import argparse
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from ..host.orphans import die_with_parent

# Names the folder of a process.
FOLDER_VARIABLE = "TORCHCOMPILE_SUITE_FOLDER"


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


def folder(name: str) -> Path:
    """A new folder of that name for files of this process. The parent removes it: a process that is
    killed cannot.
    """
    made = Path(os.environ[FOLDER_VARIABLE], name)
    made.mkdir()
    return made
