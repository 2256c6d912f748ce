"""Measure a commit without building it: its Python files over the nearest release's binary.

The base is the newest release or nightly that the commit descends from. Files come from the
clone's objects. No file of the base is written to, because uv links it from its cache: each is put
aside, and another put in its place. A journal, written first, tells the next run what to put back,
so that the base returns with the very same files, whatever interrupted this one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from ..cell import Overlay
from ..errors import SuiteError
from ..host.files import write_atomically
from ..releases import catalogue, environments, verify
from ..releases.catalogue import Release
from ..releases.install import MARKER
from ..results import overlay_marker
from .clone import Clone, Difference

JOURNAL = "torchcompile-suite-overlay.journal"
ASIDE = "torchcompile-suite-overlay.base"
STAGED = "torchcompile-suite-overlay.new"
GATE = Path(__file__).with_name("gate.py")
GATE_LIMIT_S = 300.0
# What the environment says of itself while files are laid or put back.
UNFINISHED = "laying a commit was interrupted; install it again"

# What a wheel holds of the repository, under the same paths.
_PACKAGES = {"torch", "torchgen", "functorch"}
_COMPILED = (
    ".c",
    ".cc",
    ".cpp",
    ".cu",
    ".cuh",
    ".h",
    ".hip",
    ".hpp",
    ".inc",
    ".m",
    ".metal",
    ".mm",
)
_NATIVE = re.compile(
    r"(aten|c10|caffe2|cmake|third_party|torch/csrc|torch/lib|torch/headeronly|functorch/csrc"
    r"|tools/autograd|tools/setup_helpers|CMakeLists\.txt|torch/CMakeLists\.txt)(/|$)"
)
# Of these the Python needs its own version: bindings, what generates them, declared operators.
_NEEDED = re.compile(
    r"torch/csrc/(?!api/|lazy/|jit/mobile/|jit/backends/)"
    r"|tools/autograd/|functorch/csrc/"
    r"|aten/src/ATen/native/[a-z_]+\.yaml$|aten/src/ATen/[^/]+\.py$"
)
# The subject of a commit on the nightly branch names the commit of the main branch that it is.
_NIGHTLY_OF = re.compile(r"nightly release \(([0-9a-f]{40})\)")


class OverlayError(SuiteError):
    """Nothing can be laid over anything here; the message says why."""


class Refused(OverlayError):
    """This commit cannot be measured; the message says why."""


class Plan(NamedTuple):
    """What laying a commit takes: the files over those of the base, and the compiled ones that
    differ and stay; ``needed`` are those of which the Python needs its own version.
    """

    files: list[Difference]
    native: list[str]
    needed: list[str]


class _Journal(msgspec.Struct):
    """The base of an environment; each path laid over it, and whether the base has such a file."""

    base: str
    paths: dict[str, bool] = {}


def plan(differences: Sequence[Difference], shipped: Callable[[str], bool]) -> Plan:
    """What laying a commit takes. ``shipped`` says whether the base has a file of that path."""
    files, native = [], []
    for each in differences:
        kind = classify(each.path, shipped(each.path))
        if kind == "python":
            files.append(each)
        elif kind == "native":
            native.append(each.path)
    return Plan(files, native, [path for path in native if _NEEDED.match(path)])


def classify(path: str, shipped: bool = False) -> str:
    """Whether a file of the repository is laid (``python``), cannot be (``native``), or is neither.

    ``shipped`` says that the base's packages have it: templates and headers that the Python reads.
    """
    if _NATIVE.match(path):
        return "native"
    file = PurePosixPath(path)
    if file.parts[0] not in _PACKAGES:
        return ""
    if shipped or file.suffix in (".py", ".pyi"):
        return "python"
    return "native" if file.suffix in _COMPILED else "python"


def base_of(
    clone: Clone, commit: str, releases: Sequence[Release] | None = None
) -> tuple[Release, str]:
    """The newest release or nightly that the commit descends from, and the upstream commit of it.

    Raises Refused where there is none.
    """
    known = catalogue.everything() if releases is None else releases
    for release in sorted(known, key=lambda each: each.date, reverse=True):
        origin = _origin(clone, release)
        if origin is not None and clone.is_ancestor(origin, commit):
            return release, origin
    raise Refused(
        f"{commit[:10]} descends from no known release or nightly; commits of the main branch need "
        "an older nightly: torchcompile-suite releases add 2.16.0.dev20261120 --index-url URL"
    )


def _origin(clone: Clone, release: Release) -> str | None:
    """The commit that a release was built from, as far as the clone has it."""
    found = clone.first_of([release.git_version or "", release.tag])
    if found is None or not release.nightly:
        return found
    named = _NIGHTLY_OF.search(clone.subject(found))
    return clone.first_of([named[1]]) if named else found


def install(
    clone: Clone,
    commit: str,
    folder: Path,
    *,
    allow_native_drift: bool = False,
    gated: bool = True,
) -> Overlay:
    """Make the environment in ``folder`` hold the commit: its base's lock, and its Python over it.

    Before anything is measured it must import, compile and compute right; whoever finds that out
    from the first launch has it not ``gated``. Raises Refused where the commit cannot be measured:
    then the environment holds the base and says why it is not to be used. Raises ReleaseError where
    not even the base can be installed.
    """
    try:
        base, origin = base_of(clone, commit)
    except Refused as refused:
        # ASV finds out in the environment which benchmarks there are, whatever it then measures.
        install_base(catalogue.read()[-1], folder)
        raise _refused(folder, Overlay("", commit), str(refused)) from None
    install_base(base, folder)
    packages = packages_of(folder)
    found = plan(clone.differences(origin, commit), lambda path: (packages / path).is_file())
    what = Overlay(base.version, commit, [each.path for each in found.files], found.native)
    if found.needed and not allow_native_drift:
        reason = (
            f"{commit[:10]} differs from PyTorch {base.version} in compiled files that its Python "
            f"needs ({_some(found.needed)}); build it, or try --allow-native-drift"
        )
        raise _refused(folder, what, reason)
    written = sorted(each.path for each in found.files if each.there)
    lay(folder, base, clone.contents(commit, written), {each.path for each in found.files})
    _compile_bytecode(folder)
    if gated and (reason := gate(folder)):
        restore(folder)
        raise _refused(folder, what, f"{commit[:10]} over PyTorch {base.version}: {reason}")
    _write(folder, what)
    return what


def _refused(folder: Path, what: Overlay, reason: str) -> Refused:
    """The error, once the environment says so too."""
    _write(folder, msgspec.structs.replace(what, overlaid=[], refused=reason))
    return Refused(reason)


def _some(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more"


def install_base(base: Release, folder: Path) -> None:
    """Make the environment hold the base and nothing over it. Raises ReleaseError."""
    restore(folder)
    if _holds(folder, base):
        return
    (folder / JOURNAL).unlink(missing_ok=True)
    environments.install(base, folder)
    _write_journal(folder, _Journal(base.version))


def _holds(folder: Path, base: Release) -> bool:
    """Whether the environment has the base already, and nobody else has changed it since."""
    if _journal(folder).base != base.version or (folder / MARKER).exists():
        return False
    return base.git_version in (None, verify.read_git_version(folder))


def lay(
    folder: Path, base: Release, contents: Iterable[tuple[str, bytes]], paths: Iterable[str]
) -> None:
    """Lay files over the base in the environment; of ``paths``, those without contents go."""
    packages, aside = packages_of(folder), folder / ASIDE
    journal = _Journal(base.version, {each: (packages / each).is_file() for each in paths})
    _write(folder, Overlay(base.version, "", refused=UNFINISHED))
    _write_journal(folder, journal)
    for path, there in journal.paths.items():
        if there:
            (aside / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(packages / path, aside / path)
    gone = set(journal.paths)
    for path, content in contents:
        # Elsewhere first, and then in its place: what a kill leaves must not lie in a package.
        (folder / STAGED).write_bytes(content)
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / STAGED).replace(packages / path)
        _forget_compiled(packages / path)
        gone.discard(path)
    for path in gone:
        (packages / path).unlink(missing_ok=True)
        _forget_compiled(packages / path)


def restore(folder: Path) -> None:
    """Put back every file of the base, exactly: the same file, not a copy of it."""
    journal = _journal(folder)
    if not journal.base:
        return
    _write(folder, Overlay(journal.base, "", refused=UNFINISHED))
    packages, aside = packages_of(folder), folder / ASIDE
    for path, there in journal.paths.items():
        target = packages / path
        if not there:
            target.unlink(missing_ok=True)
            _forget_compiled(target)
            _remove_empty(target.parent, packages)
            continue
        if (aside / path).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            (aside / path).replace(target)
        _forget_compiled(target)
    _write_journal(folder, _Journal(journal.base))
    shutil.rmtree(aside, ignore_errors=True)
    (folder / overlay_marker.FILE).unlink(missing_ok=True)


def _remove_empty(folder: Path, top: Path) -> None:
    """A folder that only the commit had would import as a package without files."""
    while (
        folder != top
        and folder.is_dir()
        and {each.name for each in folder.iterdir()} <= {"__pycache__"}
    ):
        shutil.rmtree(folder)
        folder = folder.parent


def _forget_compiled(source: Path) -> None:
    """Bytecode is of a source if size and time agree, which those of two commits may."""
    for file in source.parent.glob(f"__pycache__/{source.stem}.*.pyc"):
        file.unlink(missing_ok=True)


def _compile_bytecode(folder: Path) -> None:
    """Of what was laid or put back; else the first launch after it would do so while it is timed.

    A file that does not compile is for the gate to find.
    """
    tops = [top for each in sorted(_PACKAGES) if (top := packages_of(folder) / each).is_dir()]
    subprocess.run(
        [str(environments.python_in(folder)), "-I", "-m", "compileall", "-q", *map(str, tops)],
        stdout=subprocess.DEVNULL,
        check=False,
    )


def gate(folder: Path) -> str:
    """Why what lies in the environment is not to be measured, or the empty string."""
    with tempfile.TemporaryDirectory(prefix="gate-") as scratch:
        variables = {
            **os.environ,
            "TMPDIR": scratch,
            "TORCHINDUCTOR_CACHE_DIR": str(Path(scratch, "cache")),
        }
        try:
            done = subprocess.run(
                [str(environments.python_in(folder)), "-I", str(GATE)],
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=GATE_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"compiling a small function took over {GATE_LIMIT_S:.0f} s"
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    # A record is read elsewhere, where this machine's paths mean nothing.
    said = lines[-1].strip().replace(str(folder), "...") if lines else ""
    return said or f"it ended with status {done.returncode}"


def packages_of(folder: Path) -> Path:
    """Where the packages of an environment lie."""
    found = next(folder.glob("lib/python3*/site-packages"), None)
    return found or folder / "Lib" / "site-packages"


def _journal(folder: Path) -> _Journal:
    try:
        return msgspec.json.decode((folder / JOURNAL).read_bytes(), type=_Journal)
    except FileNotFoundError:
        return _Journal("")
    except (OSError, msgspec.DecodeError) as error:
        raise OverlayError(
            f"{folder / JOURNAL} cannot be read ({error}); delete {folder}: it is made anew"
        ) from None


def _write_journal(folder: Path, journal: _Journal) -> None:
    write_atomically(folder / JOURNAL, msgspec.json.encode(journal))


def _write(folder: Path, what: Overlay) -> None:
    write_atomically(folder / overlay_marker.FILE, msgspec.json.encode(what))
