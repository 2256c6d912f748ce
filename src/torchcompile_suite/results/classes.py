"""The classes of the machines in results/: machines of one class have the same hardware."""

from __future__ import annotations

import json
from pathlib import Path

from ..host import machine
from . import records, regular
from .records import Problem

_MOST_BYTES = 1 << 20


def of_machines(results: Path, problems: list[Problem]) -> dict[str, str]:
    """The class of each machine that describes itself (`host.machine.class_of`), by name.

    A description that cannot be read is a problem, and its machine is left out.
    """
    found = {}
    for folder in records.machine_folders(results, problems):
        where = f"{folder.name}/{machine.FILE}"
        with records.named(where, problems):
            try:
                fields = json.loads(regular.read_own(folder / machine.FILE, _MOST_BYTES))
            except RecursionError:
                raise ValueError("nested too deeply") from None
            if not isinstance(fields, dict):
                raise ValueError("not an object")
            found[folder.name] = machine.class_of(fields)
    return found
