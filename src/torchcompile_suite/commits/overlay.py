"""Measure a commit without building it: its Python files over the binary of a release.

The release is the newest one that the commit descends from. `journal` applies the files, which come
from the objects of the clone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import msgspec

from ..conditions import Overlay
from ..engine.launches import Refused
from ..host.files import write_atomically
from ..releases import catalogue, drivers, environments, stamp
from ..releases.catalogue import Release
from ..releases.install import MARKER
from . import journal
from .clone import Clone, Difference

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
# A commit of the nightly branch names its commit of the main branch in its subject.
_NIGHTLY_OF = re.compile(r"nightly release \(([0-9a-f]{40})\)")


class ChangedFiles(NamedTuple):
    """The files that differ between a commit and its base.

    - ``python``: files to overlay.
    - ``native``: compiled files. They stay as in the base: this is the native drift.
    - ``needed``: the native files that the Python files need in their own version.
    """

    python: list[Difference]
    native: list[str]
    needed: list[str]


def install(
    clone: Clone,
    commit: str,
    folder: Path,
    *,
    allow_native_drift: bool = False,
    any_python: bool = False,
) -> Overlay:
    """Make the environment in ``folder`` hold the commit: its base's lock, and its Python files.

    ``any_python``: make the environment anew where the base does not support its Python. Whether
    the result imports, compiles and computes correctly is for the first launch to find: one
    that fails has no figure. Raises Refused if the commit cannot be measured: then the environment
    holds the base, and its marker gives the reason. Raises SuiteError if not even the base can be
    installed.
    """
    try:
        base, origin = base_of(clone, commit)
    except Refused as refused:
        # ASV lists the benchmarks inside the environment, so it must hold some release.
        install_base(catalogue.newest(), folder, any_python)
        journal.mark(folder, Overlay("", commit, refused=str(refused)))
        raise
    install_base(base, folder, any_python)
    packages = environments.packages_in(folder)
    files = changed_files(
        clone.differences(origin, commit), lambda path: (packages / path).is_file()
    )
    paths = [difference.path for difference in files.python]
    overlay = Overlay(base.version, commit, paths, files.native)
    reason = "" if allow_native_drift else _needed_drift(commit, base, files.needed)
    if reason:
        journal.mark(folder, msgspec.structs.replace(overlay, overlaid=[], refused=reason))
        raise Refused(reason)
    written = sorted(difference.path for difference in files.python if difference.there)
    journal.apply(folder, base.version, clone.contents(commit, written), paths)
    _compile_bytecode(folder)
    journal.mark(folder, overlay)
    return overlay


def install_base(base: Release, folder: Path, any_python: bool = False) -> None:
    """Make the environment hold the base without an overlay. Raises SuiteError."""
    journal.restore(folder)
    if _holds(folder, base):
        return
    journal.forget(folder)
    (folder / stamp.FILE).unlink(missing_ok=True)
    drivers.check(base)
    minor = environments.minor_in(folder)
    if any_python and minor and not base.supports(minor):
        environments.remove_folder(folder)
    environments.install(base, folder)
    write_atomically(folder / stamp.FILE, environments.digest(base).encode())
    journal.begin(folder, base.version)


def _holds(folder: Path, base: Release) -> bool:
    """Whether the environment holds the base with its extras, and no other program has changed it
    since.
    """
    if journal.base_version(folder) != base.version or (folder / MARKER).exists():
        return False
    if stamp.read(folder) != environments.digest(base):
        return False
    return base.git_version in (None, environments.read_git_version(folder))


def _needed_drift(commit: str, base: Release, needed: Sequence[str]) -> str:
    """Why the commit is refused: compiled files that its Python files need. Empty if none."""
    if not needed:
        return ""
    shown = ", ".join(needed[:3])
    if len(needed) > 3:
        shown += f" and {len(needed) - 3} more"
    return (
        f"{commit[:10]} differs from PyTorch {base.version} in compiled files that its Python "
        f"needs ({shown}); build it, or try --allow-native-drift"
    )


def _compile_bytecode(folder: Path) -> None:
    """Compile the overlaid files, so that the first launch does not do it while it is timed.

    The launch finds a file that does not compile.
    """
    packages = environments.packages_in(folder)
    present = [str(packages / name) for name in PACKAGES if (packages / name).is_dir()]
    subprocess.run(
        [str(environments.python_in(folder)), "-I", "-m", "compileall", "-q", *present],
        stdout=subprocess.DEVNULL,
        check=False,
    )


def base_of(
    clone: Clone, commit: str, releases: Sequence[Release] | None = None
) -> tuple[Release, str]:
    """The newest release or nightly that the commit descends from, and its upstream commit.

    Raises Refused if there is none.
    """
    known = catalogue.everything() if releases is None else releases
    for release in sorted(known, key=lambda release: release.date, reverse=True):
        origin = _origin(clone, release)
        if origin is not None and clone.is_ancestor(origin, commit):
            return release, origin
    raise Refused(
        f"{commit[:10]} descends from no known release or nightly; commits of the main branch need "
        "an older nightly: torchcompile-suite releases add 2.16.0.dev20261120 --index-url URL"
    )


def _origin(clone: Clone, release: Release) -> str | None:
    """The commit that a release was built from; None if the clone does not have it."""
    commit = clone.first_of([release.git_version or "", release.tag])
    if commit is None or not release.nightly:
        return commit
    named = _NIGHTLY_OF.search(clone.subject(commit))
    return clone.first_of([named[1]]) if named else commit


def changed_files(
    differences: Sequence[Difference], shipped: Callable[[str], bool]
) -> ChangedFiles:
    """Sort the differences. ``shipped``: whether the base's packages have a file of that path."""
    kinds = [(one, classify(one.path, shipped(one.path))) for one in differences]
    python = [one for one, kind in kinds if kind == "python"]
    native = [one.path for one, kind in kinds if kind == "native"]
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
