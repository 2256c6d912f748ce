"""Reads the report as its pages do: the manifest, the machines, and the documents of a machine."""

from __future__ import annotations

import base64
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from torchcompile_suite.site import packs
from torchcompile_suite.site.sections import rows

__all__ = ["Machine", "Report", "read_pack", "rows"]

_CALL = re.compile(rf'{packs.FUNCTION}\("([0-9a-z]+)",(\{{.*\}})\);\n', re.DOTALL)


def read_pack(file: Path) -> dict[str, Any]:
    """The documents of a pack, by key."""
    found = _CALL.fullmatch(file.read_text("ascii"))
    assert found is not None, f"{file.name} is no pack"
    texts = json.loads(found[2])
    return {key: packs.decode(base64.b64decode(text)) for key, text in texts.items()}


class Machine:
    """A machine of the report."""

    def __init__(self, report: Report, entry: dict[str, Any]) -> None:
        self.report = report
        self.entry = entry

    @property
    def name(self) -> str:
        return str(self.entry["name"])

    @cached_property
    def index(self) -> Any:
        return self.report.read(self.entry["index"])["index"]

    @property
    def keys(self) -> list[str]:
        return list(self.index["documents"])

    def document(self, key: str) -> Any:
        return self.report.read(self.index["packs"][self.index["documents"][key]])[key]

    def figures(self, point: str) -> list[dict[str, Any]]:
        """The figures of all cells at a point."""
        keys = [key for key in self.keys if key.startswith(f"figures/{point}/")]
        return [row for key in keys for row in rows(self.document(key))]

    def lines(self) -> dict[str, Any]:
        """The history of all cells."""
        keys = [key for key in self.keys if key.startswith("lines/")]
        return {name: line for key in keys for name, line in self.document(key).items()}


class Report:
    """The report in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packs: dict[str, dict[str, Any]] = {}

    def read(self, name: str) -> dict[str, Any]:
        """The documents of a pack."""
        if name not in self._packs:
            self._packs[name] = read_pack(self.folder / packs.FOLDER / f"{name}.js")
        return self._packs[name]

    @property
    def manifest(self) -> Any:
        return self.read("manifest")["manifest"]

    @cached_property
    def machines(self) -> dict[str, Machine]:
        return {entry["name"]: Machine(self, entry) for entry in self.manifest["machines"]}

    @property
    def problems(self) -> list[str]:
        """Where each problem is."""
        return [row["where"] for row in rows(self.read(self.manifest["problems"])["problems"])]

    def everything(self) -> dict[str, Any]:
        """Every document, by machine and key: what two reports have to have in common."""
        found = {
            f"{machine.name} {key}": machine.document(key)
            for machine in self.machines.values()
            for key in machine.keys
        }
        machines = [
            {key: value for key, value in entry.items() if key != "index"}
            for entry in self.manifest["machines"]
        ]
        return {**found, "machines": machines, "points": self.manifest["points"]}
