"""Where a machine keeps the series that it measures.

The folder belongs to one machine name, so that machines which share a home folder do not meet.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from ..engine import journal

FOLDER_VARIABLE = "TORCHCOMPILE_SUITE_FLEET"


def root() -> Path:
    """The folder of all machines that use this disk."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else platformdirs.user_cache_path("torchcompile-suite") / "fleet"


def of_machine(machine: str) -> Path:
    """The folder of a machine."""
    return root() / machine


def of_series(machine: str, identity: str) -> Path:
    """The folder of a series on a machine: its journal, and compiled code while it is measured."""
    return of_machine(machine) / identity


def journals(machine: str) -> dict[str, int]:
    """The series that the machine has begun, and the number of launches of each."""
    found = sorted(of_machine(machine).glob(f"*/{journal.FILE}"))
    return {file.parent.name: journal.recorded(file.parent) for file in found}


def drop_compiled(machine: str, identity: str) -> None:
    """Remove the compiled code of a series that is complete. Its journal stays."""
    shutil.rmtree(of_series(machine, identity) / journal.CACHES, ignore_errors=True)


def forget(machine: str, identities: Iterable[str]) -> None:
    """Remove series whose results are stored."""
    for identity in identities:
        journal.discard(of_series(machine, identity))
