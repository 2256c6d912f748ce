"""Runs an ASV command in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ..engine.settings import PREFIX
from ..errors import SuiteError
from ..host.programs import Terminated

# A regular expression for `asv compare`, which has no --bench: rows of other cells are left out.
ROWS_VARIABLE = PREFIX + "COMPARE"
# Grace period after Ctrl-C: more than the launches themselves get (`engine.processes`).
STOP_S = 30.0


def run(
    *arguments: str,
    accept: tuple[int, ...] = (0,),
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run ``asv ARGUMENTS`` in the current folder, with more environment ``variables``.

    Raises SuiteError on an exit status that is not in ``accept``. Status 2 of ``asv run`` means
    that some cells failed. Their outcome is recorded.
    """
    _need_configuration()
    command = [sys.executable, "-m", "asv", *arguments]
    process = subprocess.Popen(command, env={**os.environ, **(variables or {})})
    try:
        status = process.wait()
    except KeyboardInterrupt as interrupt:
        # asv ends its launches, and seals what was measured. Of Ctrl-C the terminal has told it.
        if isinstance(interrupt, Terminated):
            process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
        raise
    finally:
        process.kill()
        process.wait()
    if status not in accept:
        raise SuiteError(f"asv {arguments[0]} ended with status {status}; its messages are above")


def python() -> str:
    """The Python that ASV measures with in the current folder, such as 3.11. Raises SuiteError."""
    _need_configuration()
    # Here, because the import takes half a second, and few commands need it.
    from asv import util
    from asv.config import Config

    try:
        return str(Config.load().pythons[0])
    except (util.UserError, IndexError) as error:
        raise SuiteError(f"asv.conf.json cannot be used: {str(error).splitlines()[0]}") from None


def environment_name() -> str:
    """ASV's name of the environment of that Python, which result files have. Raises SuiteError."""
    of_python = python()
    from asv.environment import get_env_name
    from asv.plugins.virtualenv import Virtualenv

    return str(get_env_name(Virtualenv.tool_name, of_python, {}, {}))


def _need_configuration() -> None:
    if not Path("asv.conf.json").is_file():
        raise SuiteError("no asv.conf.json here; run this in a clone of torchcompile-suite")
