"""``torchcompile-suite open``: a compile's graphs, IR, code and guards, in a folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from . import elsewhere
from .cell import Cell
from .errors import SuiteError
from .releases import environments
from .releases.catalogue import Release


class OpenError(SuiteError):
    """The compile cannot be opened; the message says why."""


def open_cell(cell: Cell, release: Release, folder: Path) -> str:
    """Compile the cell in the release's environment and fill ``folder``, which must be empty.

    Returns the kinds of artefacts written. Raises OpenError or ReleaseError.
    """
    if folder.exists() and any(folder.iterdir()):
        raise OpenError(f"{folder} is not empty; name another folder with --output")
    python, _ = environments.install(release, environments.SCRATCH)
    order = msgspec.json.encode({"cell": cell, "folder": str(folder.absolute())})
    said = elsewhere.ask(python, "torchcompile_suite.launch.artefacts", order)
    if said.status:
        raise OpenError(f"{cell} on {release.version}: {said.last_line}")
    return said.out.decode().strip().splitlines()[-1]
