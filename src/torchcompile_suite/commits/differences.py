"""Which files of a commit can be overlaid, and which would need a new binary."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from .clone import Difference

# The packages of a wheel. They have the same paths in the repository.
PACKAGES = ("functorch", "torch", "torchgen")

_COMPILED = frozenset(
    (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hip", ".hpp", ".inc", ".m", ".metal", ".mm")
)
_NATIVE = re.compile(
    r"(aten|c10|caffe2|cmake|third_party|torch/csrc|torch/lib|torch/headeronly|functorch/csrc"
    r"|tools/autograd|tools/setup_helpers|CMakeLists\.txt|torch/CMakeLists\.txt)(/|$)"
)
# The Python files need the same version of these: bindings, their generators, declared operators.
_NEEDED = re.compile(
    r"torch/csrc/(?!api/|lazy/|jit/mobile/|jit/backends/)"
    r"|tools/autograd/|functorch/csrc/"
    r"|aten/src/ATen/native/[a-z_]+\.yaml$|aten/src/ATen/[^/]+\.py$"
)


class ChangedFiles(NamedTuple):
    """The files that differ between a commit and its base.

    - ``python``: files to overlay.
    - ``native``: compiled files. They stay as in the base: this is the native drift.
    - ``needed``: the native files that the Python files need in their own version.
    """

    python: list[Difference]
    native: list[str]
    needed: list[str]


def changed_files(
    differences: Sequence[Difference], shipped: Callable[[str], bool]
) -> ChangedFiles:
    """Sort the differences. ``shipped``: whether the base's packages have a file of that path."""
    python, native = [], []
    for difference in differences:
        kind = classify(difference.path, shipped(difference.path))
        if kind == "python":
            python.append(difference)
        elif kind == "native":
            native.append(difference.path)
    return ChangedFiles(python, native, [path for path in native if _NEEDED.match(path)])


def classify(path: str, shipped: bool = False) -> Literal["python", "native", ""]:
    """The kind of a file: ``python`` can be overlaid, ``native`` cannot. Empty for other files.

    ``shipped``: the base's packages have the file. Such a template or header is data for Python.
    """
    if _NATIVE.match(path):
        return "native"
    file = PurePosixPath(path)
    if file.parts[0] not in PACKAGES:
        return ""
    if shipped or file.suffix in (".py", ".pyi"):
        return "python"
    return "native" if file.suffix in _COMPILED else "python"
