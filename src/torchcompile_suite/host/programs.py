"""Other programs, run to their end."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable

# Nothing is on the program's standard input unless ``input`` says so. Its exit status is the
# caller's to judge.
run: Callable[..., subprocess.CompletedProcess[str]] = functools.partial(
    subprocess.run, input="", capture_output=True, encoding="utf-8", errors="replace", check=False
)
