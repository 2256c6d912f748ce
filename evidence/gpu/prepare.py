"""Fetches what a bare GPU machine lacks: wheels, as files that travel with the checkout.

    python -m evidence.gpu.prepare            # here, with a network: fills .gpu/wheels

The other machine has Python, torch, timm and what they bring, and no network. `activate` installs
the wheels there, in a folder of their own. This module needs the standard library only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Set in the program that `activate` has started: where the wheels are installed.
STARTED = "TORCHCOMPILE_SUITE_WHEELS"
ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / ".gpu" / "wheels"
# The Python of the machine that is lent.
PYTHON = "3.12"
# What the suite needs and a bare machine with torch and timm has, and what installs releases.
THERE = ("numpy", "scipy", "uv")
# Wheels for an older glibc run on a newer one, and pip takes only what it is told of.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (5, 12, 17, 24, 26, 27, 28, 31, 34, 35)]
PLATFORMS += ["manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64"]
# All that travels may have 64 MiB, and the checkout has 15.
MOST_BYTES = 20 << 20


def fetch() -> None:
    """Download the wheels. Raises SystemExit if one is not to be had, or all are too large."""
    import tomllib  # here: the tests also run with Python 3.10, which lacks it

    WHEELS.mkdir(parents=True, exist_ok=True)
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["suite"]]
    wanted = [each for each in needed if not each.startswith(THERE)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp"]
    command += ["--dest", str(WHEELS), *(f"--platform={platform}" for platform in PLATFORMS)]
    if subprocess.run([*command, *wanted]).returncode:
        raise SystemExit("not all wheels are here; the message of pip names the one")
    size = sum(file.stat().st_size for file in WHEELS.glob("*.whl"))
    if size > MOST_BYTES:
        raise SystemExit(f"{WHEELS} has {size >> 20} MiB, more than {MOST_BYTES >> 20}")
    print(f"{len(list(WHEELS.glob('*.whl')))} wheels, {size / 2**20:.1f} MiB, in {WHEELS}")


def activate() -> None:
    """Start this program anew with the suite and the wheels on the import path, once."""
    if os.environ.get(STARTED):
        return
    wheels = sorted(WHEELS.glob("*.whl"))
    if not wheels:
        raise SystemExit(f"no wheels in {WHEELS}; with a network: python -m evidence.gpu.prepare")
    # By this name Python knows a folder of packages: `releases adopt` takes it along.
    site = str(Path(tempfile.mkdtemp(prefix="gpu-"), "site-packages"))
    for wheel in wheels:
        # A wheel is an archive, and the Python may have no pip.
        zipfile.ZipFile(wheel).extractall(site)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), site])
    environment = {**os.environ, "PYTHONPATH": path, STARTED: site}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


if __name__ == "__main__":
    fetch()
