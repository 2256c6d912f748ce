"""A user's file, imported as Python would run it: once, from its own folder, without arguments."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from ..engine.processes import import_path
from ..workloads import WorkloadError

# With it, Python leaves the current folder out of the import path (3.11 or newer).
_SAFE_PATH = "PYTHONSAFEPATH"


def variables() -> dict[str, str]:
    """The environment of the processes that import a file.

    The current folder is not on their import path before torch is imported: there, a file with a
    name of the standard library, such as ``profile.py``, would be taken for that module.
    """
    return {_SAFE_PATH: "1", "PYTHONPATH": import_path()}


def without_arguments(program: str) -> None:
    """Make this process look like a script without arguments to the user's code."""
    sys.argv = [program]
    os.environ.pop(_SAFE_PATH, None)


@functools.cache
def load(path: Path) -> ModuleType:
    """Import the file. Raises WorkloadError, or any exception of the user's code.

    A file of a package gets the package's name, so that its relative imports work. A name that
    means something else here, as ``profile`` does, is left to that module.
    """
    without_arguments(str(path))
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if path.stem in sys.stdlib_module_names:
        importlib.import_module(path.stem)  # before the user's folder is on the import path
    sys.path[:0] = dict.fromkeys([str(path.parent), str(folder)])
    sys.path.append(str(Path.cwd()))
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    name = f"{path.stem}_py" if path.stem in sys.modules else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WorkloadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
