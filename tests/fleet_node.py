"""`fleet.node` as it is, with scripted launches instead of real ones. A program, like `node`.

Each launch is a process in a session of its own that ends with its parent, as real launches are.
The journal and the messages are real. Variables (all begin with
TORCHCOMPILE_SUITE_TEST_) say what is to happen. A JSON file, which ..._SETTINGS names, comes first:

- LAUNCH_S: seconds of a launch. MARK: an argument of each launch's process, to find it by.
- HANG: a file. While it exists, a launch never ends and nothing is said within a second.
- LOCKS: text that becomes part of the digests of locks on machines with that text in their names.
- NEWER: text in the names of machines whose suite describes itself in words of the future.
- WITHIN_S: the silence that a machine announces after each launch, in seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import msgspec

from torchcompile_suite.engine import rounds
from torchcompile_suite.engine.journal import Journal
from torchcompile_suite.engine.series import Series
from torchcompile_suite.engine.settings import LAUNCH_LIMIT_S
from torchcompile_suite.fleet import inspection, node
from torchcompile_suite.fleet.messages import Described, Order, Told
from torchcompile_suite.fleet.node import Say
from torchcompile_suite.measurement import METHOD, OK, Launch

PREFIX = "TORCHCOMPILE_SUITE_TEST_"
LAUNCH = """
import sys, time
from torchcompile_suite.host.orphans import die_with_parent
die_with_parent()
time.sleep(float(sys.argv[2]))
"""


def variable(name: str, otherwise: str = "") -> str:
    file = os.environ.get(PREFIX + "SETTINGS")
    settings = msgspec.json.decode(Path(file).read_bytes(), type=dict[str, str]) if file else {}
    return settings.get(name) or os.environ.get(PREFIX + name, otherwise)


def work(_order: Order, plan: Series, known: Journal, say: Say) -> None:
    def make(release: str, cache: Path) -> Launch:
        cache.mkdir(parents=True, exist_ok=True)
        kind: Literal["cold", "warm"] = "warm" if any(cache.iterdir()) else "cold"
        hang = variable("HANG")
        if hang and Path(hang).exists():
            say(Told("hangs", 1.0))
            time.sleep(3600)
        command = [sys.executable, "-c", LAUNCH, variable("MARK"), variable("LAUNCH_S", "0.1")]
        subprocess.run(command, start_new_session=True, check=True)
        (cache / "compiled").touch()
        return Launch(
            kind,
            OK,
            pairs_s=[(0.04, 0.03)] * 15,
            warm_up_s=[30.0 if kind == "cold" else 8.0, *[0.03] * 10],
            steady=True,
            method=METHOD,
        )

    rounds.measure(plan, make, known)


class Newer(msgspec.Struct, frozen=True, tag="newer"):
    """A message that this suite does not know."""

    machine: str
    within_s: float = 60.0


def main() -> None:
    # This machine is never quiet while it runs tests; tests/test_fleet.py looks at the doctor.
    node.MARGIN_S = float(variable("WITHIN_S", "60")) - LAUNCH_LIMIT_S  # type: ignore[attr-defined]
    inspection.faults = lambda _order, _priority: []  # type: ignore[assignment]
    described = inspection.described

    def other_locks(order: Order, found: object = ()) -> Described:
        said = described(order)
        newer = variable("NEWER")
        if newer and newer in order.machine:
            return Newer(order.machine)  # type: ignore[return-value]
        other = variable("LOCKS")
        if not other or other not in order.machine:
            return said
        return msgspec.structs.replace(said, locks=dict.fromkeys(said.locks, other))

    inspection.described = other_locks
    node.main(work)


if __name__ == "__main__":
    main()
