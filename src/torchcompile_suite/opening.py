"""``torchcompile-suite open``: a compile's graphs, IR, code and guards, in a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec

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
    source = str(Path(__file__).resolve().parents[1])
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH")))),
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [str(python), "-m", "torchcompile_suite.launch.artefacts"],
        input=msgspec.json.encode({"cell": cell, "folder": str(folder.absolute())}),
        env=variables,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OpenError(f"{cell} on {release.version}: {said[-1] if said else 'it failed'}")
    return done.stdout.decode().strip().splitlines()[-1]
