"""The classes of the machines in results/: machines of one class have the same hardware."""

from __future__ import annotations

from pathlib import Path

from ..host import machine
from . import descriptions, records
from .records import Problem


def of_machines(results: Path, problems: list[Problem]) -> dict[str, str]:
    """The class of each machine that describes itself (`host.machine.class_of`), by name.

    A description that cannot be read is a problem, and its machine is left out.
    """
    found = {}
    for folder in records.machine_folders(results, problems):
        where = f"{folder.name}/{machine.FILE}"
        with records.named(where, problems):
            found[folder.name] = machine.class_of(descriptions.read(folder).fields)
    return found
