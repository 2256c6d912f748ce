"""Write the lock of a release: every package, pinned, of the environment it is measured in.

Releases are compared with each other. Their environments may differ in PyTorch and in what PyTorch
requires, and in nothing else: a faster NumPy must not look like a faster PyTorch. A new lock
therefore starts from the lock of the release before it. A newer one may have no versions for an
older Python. Of the lock that it starts from:

- Packages that PyTorch does not require keep their versions.
- Packages that PyTorch requires keep their versions if the new release allows it.
- PyTorch, torchvision, Triton and the CUDA packages are resolved anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from ..errors import SuiteError
from ..host import programs
from ..host.files import write_or_say
from . import catalogue
from .catalogue import LOCKS, NIGHTLY, Release

# The requirements of every release's environment. timm defines the models, so it is pinned.
INPUTS = (
    "timm==1.0.31",
    "numpy",
    "scipy",
    "msgspec",
    "psutil",
    "setuptools",  # Inductor of PyTorch 2.4 to 2.9 needs it
    "asv_runner==0.3.2",
    "uv",  # in every published lock
    "pip",  # ASV uninstalls with it
)

# Corrections of upstream metadata. Only the Windows wheels of torchvision 0.19.0 require numpy<2,
# but uv reads the metadata of one wheel and applies it to all wheels.
OVERRIDES = {"2.4.0": ("numpy>=1.26",)}

# Names and versions only: a `+cpu` build, a URL or a path does not exist on every machine.
PIN = re.compile(r"(?P<name>[a-z0-9]+(-[a-z0-9]+)*)==(?P<version>[0-9][0-9a-z.]*)( ; [^#@]+)?")
# A nightly exists in one index only, and has a local version there.
_NIGHTLY_PIN = re.compile(PIN.pattern.replace("[0-9a-z.]*", r"[0-9a-z.]*(\+[a-z0-9.]+)?"))

_RESOLVED_ANEW = re.compile(r"(torch|torchvision|triton|nvidia-.*|cuda-.*)==")
_REQUIRED_BY_TORCH = re.compile(
    r"(sympy|mpmath|networkx|jinja2|markupsafe|filelock|fsspec|setuptools|typing-extensions)=="
)
# A developer's own settings that would change the lock for every user.
_PERSONAL = (
    "UV_CONSTRAINT",
    "UV_CUSTOM_COMPILE_COMMAND",
    "UV_EXCLUDE",
    "UV_FIND_LINKS",
    "UV_FORK_STRATEGY",
    "UV_OVERRIDE",
    "UV_PRERELEASE",
    "UV_REQUIRE_HASHES",
    "UV_RESOLUTION",
    "UV_TORCH_BACKEND",
)


def write(release: Release, text: str, folder: Path = LOCKS, *, published: bool) -> bool:
    """Write ``text`` as a release's lock. Returns whether the file changed.

    The lock of a published release is part of its ledger commit: raises ``SuiteError`` if it would
    change.
    """
    target = folder / f"{release.version}.txt"
    if target.exists():
        if target.read_text("utf-8") == text:
            return False
        if published:
            raise SuiteError(
                f"{target.name} would change, and with it a commit that results refer to; "
                "the file was not changed"
            )
    write_or_say(target, text.encode())
    return True


def resolve(release: Release, folder: Path = LOCKS) -> str:
    """The text of a release's lock, resolved now from the configured package index.

    For a nightly, uv also uses the nightly's own index.
    Raises ``SuiteError`` if uv finds no solution or cannot reach the index.
    """
    own = folder / f"{release.version}.txt"
    earlier = _newest(folder, below=release.key)
    known = own if own.exists() else earlier or _newest(folder)
    known_text = known.read_text("utf-8") if known else ""
    pins = known_text.splitlines()
    if known != own:
        pins = [pin for pin in pins if not _RESOLVED_ANEW.match(pin)]
    text = _solve(release, pins)
    check(release.version, text)
    if earlier and not release.nightly:
        _check_torchvision(release, _pinned(earlier.read_text("utf-8"), "torchvision"), text)
    return text


def _solve(release: Release, pins: Sequence[str]) -> str:
    """Have uv resolve the environment. It keeps the versions in ``pins`` where it can."""
    fixed = [p for p in pins if not _RESOLVED_ANEW.match(p) and not _REQUIRED_BY_TORCH.match(p)]
    # `==` also matches a +cpu build, and uv would choose that build if the index has one. `===`
    # does not. A nightly has only local versions, so it needs `==`; naming a pre-release in the
    # requirement allows it.
    inputs = [f"torch==={release.version}", *INPUTS]
    index = []
    if release.nightly:
        inputs = [f"torch=={release.version}", "torchvision>=0.0.dev0", *INPUTS]
        index = index_options(release.index_url)
    environment = {k: v for k, v in os.environ.items() if k not in _PERSONAL}
    # uv can resolve for a Python that is not installed, and must not download one.
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        result = folder / "lock.txt"
        result.write_text(_lines(pins), "utf-8")  # uv prefers the versions in its output file
        (folder / "inputs.txt").write_text(_lines(inputs), "utf-8")
        (folder / "constraints.txt").write_text(_lines(fixed), "utf-8")
        (folder / "overrides.txt").write_text(_lines(OVERRIDES.get(release.version, ())), "utf-8")
        done = uv(
            "pip", "compile", "inputs.txt",
            "--constraints", "constraints.txt",
            "--overrides", "overrides.txt",
            "--output-file", "lock.txt",
            "--universal",
            "--python-version", release.usable_pythons[0],
            "--no-build", "--no-header", "--no-annotate",
            "--quiet", "--python", sys.executable,
            *index,
            env=environment,
            cwd=folder,
        )  # fmt: skip
        if done.returncode:
            reason = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            raise SuiteError(f"uv could not lock PyTorch {release.version}: {reason}")
        solved = result.read_text("utf-8").splitlines()
    # This line is part of the published locks: it must not change.
    head = f"# The whole environment in which PyTorch {release.version} is measured."
    return _lines([f"{head} Published: never edit it.", *solved])


def index_options(url: str | None) -> list[str]:
    """uv options that add the index of a nightly to the configured one."""
    return ["--index", url, "--index-strategy", "unsafe-best-match"] if url else []


def check(version: str, text: str) -> None:
    """Raise ``SuiteError`` unless ``text`` pins all packages that a release's environment needs."""
    names = {"torch": f"torch=={version}"}
    pin = _NIGHTLY_PIN if NIGHTLY.fullmatch(version) else PIN
    missing = {re.split("==", name)[0].replace("_", "-") for name in INPUTS} | {"torchvision"}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = pin.fullmatch(line)
        if match is None:
            raise SuiteError(
                f"the lock of PyTorch {version} has {line!r}, which is not a plain pin; "
                "use an index that has the registry's own builds"
            )
        missing.discard(match["name"])
        if match["name"] == "torch" and match["version"].partition("+")[0] == version:
            names.clear()
    if names or missing:
        lacks = ", ".join(sorted({*names.values(), *missing}))
        raise SuiteError(f"the lock of PyTorch {version} lacks {lacks}; run uv's newest version")


# A release is 3 GB of downloads. Less than an hour: so long others wait for an installation (the
# lock of its environment, a fleet, ASV).
UV_LIMIT_S = 3300.0


def uv(
    *arguments: str | Path, limit_s: float = UV_LIMIT_S, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the uv of this Python, as `programs.run`. If it takes longer, it ends, and has failed."""
    try:
        return programs.run([sys.executable, "-m", "uv", *arguments], timeout=limit_s, **options)
    except subprocess.TimeoutExpired:
        reason = f"it took more than {limit_s / 60:.0f} minutes; run again: uv keeps its downloads"
        return subprocess.CompletedProcess(list(arguments), 1, "", reason)


def _newest(folder: Path, below: Version | None = None) -> Path | None:
    """The lock of the newest release, or of the newest one below; nightlies do not count."""
    locks = [path for path in folder.glob("*.txt") if catalogue.is_final(path.stem)]
    if below is not None:
        locks = [path for path in locks if Version(path.stem) < below]
    return max(locks, key=lambda path: Version(path.stem), default=None)


def _check_torchvision(release: Release, known: Version | None, text: str) -> None:
    """Refuse a torchvision older than the ``known`` one.

    If the matching torchvision is missing from the index, uv does not fail: it takes a very old
    torchvision that does not require a particular torch.
    """
    new = _pinned(text, "torchvision")
    if known is not None and (new is None or new < known):
        raise SuiteError(
            f"uv paired PyTorch {release.version} with torchvision {new}, older than that of the "
            "release before; is the matching torchvision in the index yet?"
        )


def _pinned(text: str, name: str) -> Version | None:
    """The version to which a lock pins the package."""
    match = re.search(rf"^{name}==([^\s;]+)", text, re.MULTILINE)
    return Version(match[1]) if match else None


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
