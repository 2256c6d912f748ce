"""``torchcompile-suite fleet`` as it is, with scripted launches (tests/fleet_node.py). A program.

The driver looks and listens more often than it usually does, so that a test of faults takes
seconds. ``TORCHCOMPILE_SUITE_TEST_RAY`` is the version that Ray claims to have here, and
``TORCHCOMPILE_SUITE_TEST_HANG_S`` the driver's patience beyond what a machine announces.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from torchcompile_suite.fleet.head import VARIABLES

os.environ.update(VARIABLES)  # as the command does, before it imports Ray

import ray

if version := os.environ.get("TORCHCOMPILE_SUITE_TEST_RAY"):
    ray.__version__ = version

from torchcompile_suite.cli.fleet import app
from torchcompile_suite.fleet import driver, plain, transport

NODE = str(Path(__file__).with_name("fleet_node.py"))


class Scripted(transport.Cluster):
    def __init__(self) -> None:
        super().__init__(functools.partial(plain.lines, program=(NODE,)))


if __name__ == "__main__":
    transport.Cluster = Scripted  # type: ignore[assignment,misc]
    driver.LOOK_EVERY_S = 0.5
    driver.HEAR_S = 0.2
    driver.HANG_S = float(os.environ.get("TORCHCOMPILE_SUITE_TEST_HANG_S", driver.HANG_S))
    app()
