"""Measure a commit without building it: its Python files over the binary of a release.

`base` chooses the release, `differences` the files, `journal` applies them, `gate` proves that the
result works. The files come from the objects of the clone.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..conditions import Overlay
from ..releases import catalogue, drivers, environments
from ..releases.catalogue import Release
from ..releases.install import MARKER
from . import journal
from .base import Refused, base_of
from .clone import Clone
from .differences import PACKAGES, ChangedFiles, changed_files
from .gate import gate

__all__ = ["Refused", "install", "install_base"]


def install(
    clone: Clone,
    commit: str,
    folder: Path,
    *,
    allow_native_drift: bool = False,
    gated: bool = True,
) -> Overlay:
    """Make the environment in ``folder`` hold the commit: its base's lock, and its Python files.

    ``gated``: prove that the result imports, compiles and computes correctly. Pass False if the
    first launch proves that anyway. Raises Refused if the commit cannot be measured: then the
    environment holds the base, and its marker gives the reason. Raises SuiteError if not even the
    base can be installed.
    """
    try:
        base, origin = base_of(clone, commit)
    except Refused as refused:
        # ASV lists the benchmarks inside the environment, so it must hold some release.
        install_base(catalogue.read()[-1], folder)
        journal.mark(folder, Overlay("", commit, refused=str(refused)))
        raise
    install_base(base, folder)
    packages = journal.packages_of(folder)
    files = changed_files(
        clone.differences(origin, commit), lambda path: (packages / path).is_file()
    )
    paths = [difference.path for difference in files.python]
    overlay = Overlay(base.version, commit, paths, files.native)
    reason = "" if allow_native_drift else _needed_drift(commit, base, files.needed)
    if not reason:
        _apply(clone, commit, base, files, folder)
        if gated and (fault := gate(folder)):
            journal.restore(folder)
            reason = f"{commit[:10]} over PyTorch {base.version}: {fault}"
    if reason:
        journal.mark(folder, msgspec.structs.replace(overlay, overlaid=[], refused=reason))
        raise Refused(reason)
    journal.mark(folder, overlay)
    return overlay


def install_base(base: Release, folder: Path) -> None:
    """Make the environment hold the base without an overlay. Raises SuiteError."""
    journal.restore(folder)
    if _holds(folder, base):
        return
    journal.forget(folder)
    drivers.check(base)
    environments.install(base, folder)
    journal.begin(folder, base.version)


def _holds(folder: Path, base: Release) -> bool:
    """Whether the environment holds the base, and no other program has changed it since."""
    if journal.base_version(folder) != base.version or (folder / MARKER).exists():
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


def _apply(clone: Clone, commit: str, base: Release, files: ChangedFiles, folder: Path) -> None:
    paths = {difference.path for difference in files.python}
    written = sorted(difference.path for difference in files.python if difference.there)
    journal.apply(folder, base.version, clone.contents(commit, written), paths)
    _compile_bytecode(folder)


def _compile_bytecode(folder: Path) -> None:
    """Compile the overlaid files, so that the first launch does not do it while it is timed.

    The gate finds a file that does not compile.
    """
    packages = journal.packages_of(folder)
    present = [str(packages / name) for name in PACKAGES if (packages / name).is_dir()]
    subprocess.run(
        [str(environments.python_in(folder)), "-I", "-m", "compileall", "-q", *present],
        stdout=subprocess.DEVNULL,
        check=False,
    )
