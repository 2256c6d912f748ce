"""Counts a project and its edits with the torch of this Python: ``count_edits.py FOLDER``.

FOLDER has a folder for each edit. Prints a JSON object with what each counts. In one process, so
that torch is imported once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from torchcompile_suite.contract import factory
from torchcompile_suite.trial import target

SHAPES = {"decoder": (1, 2, 3)}


def main(root: Path, answer: BinaryIO) -> None:
    """Count for each folder."""
    found = {}
    for folder in sorted(root.iterdir()):
        here = [name for name, module in sys.modules.items() if _file(module).startswith(str(root))]
        for name in here:
            del sys.modules[name]
        path = list(sys.path)
        target.load.cache_clear()
        wanted = target.parse(f"{folder / 'model.py'}:make")
        assert isinstance(wanted, target.Target)
        sizes = SHAPES.get(folder.name.partition(" ")[0], ())
        print(folder.name, file=sys.stderr, flush=True)
        found[folder.name] = factory.count(factory.Order(wanted, str(folder), sizes))
        sys.path[:] = path
    answer.write(msgspec.json.encode(found))


def _file(module: object) -> str:
    return str(getattr(module, "__file__", "") or "")


if __name__ == "__main__":
    # What a project prints is no answer.
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        main(Path(sys.argv[1]), answer)
