"""Proves that an environment with an overlay works, before anything is measured in it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from torchcompile_suite.host import programs
from torchcompile_suite.releases import environments

SCRIPT = Path(__file__).with_name("gate_script.py")
LIMIT_S = 300.0


def gate(folder: Path) -> str:
    """Why the environment in ``folder`` must not be measured, in one line; empty if it may be.

    Runs `gate_script` in the environment, with an empty compiler cache.
    """
    with tempfile.TemporaryDirectory(prefix="gate-") as scratch:
        variables = {
            **os.environ,
            "TMPDIR": scratch,
            "TORCHINDUCTOR_CACHE_DIR": str(Path(scratch, "cache")),
        }
        try:
            command = [environments.python_in(folder), "-I", SCRIPT]
            done = programs.run(command, env=variables, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"compiling a small function took over {LIMIT_S:.0f} s"
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    # The record is read on other machines, where this machine's paths mean nothing.
    reason = lines[-1].strip().replace(str(folder), "...") if lines else ""
    return reason or f"the gate ended with status {done.returncode}"
