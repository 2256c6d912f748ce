"""What a machine must be like to take part: the same suite, and nothing that spoils numbers.

A machine looks at itself (`described`, `faults`). The driver decides (`refusal`).
"""

from __future__ import annotations

import hashlib
import os
import platform
import sysconfig
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from ..doctor import Check, Level, gpus, hardware, probe, software
from ..errors import SuiteError
from ..host import machine
from ..releases import apart, catalogue, environments, room
from ..releases.catalogue import Release
from ..results import cached
from .messages import START_S, Described, Failed, Order, Transport

# Warnings of the doctor that mean wrong numbers here: nobody sits in front of the machine.
SPOILING = frozenset({"other load", "cores", gpus.PROCESSES})
# A process that ends within seconds is no load; Ray itself has just started one.
LOOKS = 3
# How long the first machine of a cluster may take to join.
JOIN_S = 120.0


def suite() -> str:
    """The digest of the suite's source: machines with another one measure by another method."""
    return cached.version(*sorted(cached.PACKAGE.rglob("*.py")))[:16]


def locks(releases: Sequence[str]) -> dict[str, str]:
    """The digest of each release's lock, its extras and what lies apart; a release that is unknown
    here is missing.
    """
    contents = {one.version: environments.digest(one).encode() for one in _known(releases)}
    beside = apart.FILE.read_bytes()
    return {
        version: hashlib.sha256(content + beside).hexdigest()[:16]
        for version, content in contents.items()
    }


def described(order: Order, found: Sequence[Check] = ()) -> Described:
    """What this machine is. ``found``: the `faults` of the doctor."""
    fields = machine.fields(order.machine)
    return Described(
        machine=order.machine,
        hardware=machine.class_of(fields),
        fields=fields,
        suite=suite(),
        locks=locks(order.releases),
        ray=probe.version("ray"),
        faults=list(found),
    )


def faults(order: Order, priority: str) -> list[Check]:
    """What the doctor finds on this machine, in seconds. ``priority``: what `node.restore` says."""
    found = [Check("priority", Level.ERROR, priority, "see docs/fleet.md")] if priority else []
    found += [check for check in _checks(order) if check.level is not Level.OK]
    return [replace(check, says=check.says[:4000]) for check in found]


def _checks(order: Order) -> Iterator[Check]:
    yield from software.caches()
    releases = _known(order.releases)
    if releases:
        oldest = {"torch": min(releases, key=lambda one: one.key).version}
        yield software.compiler({"include": _include(releases, order.python), "versions": oldest})
        yield _releases(releases, order.python)
    for _ in range(LOOKS):
        checks = list(hardware.checks())
        if not any(one.name == "other load" and one.level is not Level.OK for one in checks):
            break
    yield from checks


def _known(versions: Sequence[str]) -> list[Release]:
    known = {release.version: release for release in catalogue.everything()}
    return [known[one] for one in versions if one in known]


def _include(releases: Sequence[Release], python: str) -> str:
    """The folder of Python's headers for the releases' environments."""
    ready = next((one for one in releases if environments.is_ready(one, python)), None)
    if ready is None or platform.python_version().startswith(f"{python}."):
        return sysconfig.get_path("include")
    probed, _ = software.probe(environments.ready(ready, python))
    return str(probed.get("include", ""))


def _releases(releases: Sequence[Release], python: str) -> Check:
    """Whether all releases fit on the disk side by side: a series needs all of them."""
    name = "releases"
    for release in releases:
        if not release.supports(python):
            says = f"PyTorch {release.version} has no wheels for Python {python}"
            return Check(name, Level.ERROR, says, "leave this release out")
    says = room.line(releases, python)
    if not room.fit_together(releases, python):
        remedy = "free space, measure fewer releases, or set TORCHCOMPILE_SUITE_ENVIRONMENTS"
        return Check(name, Level.ERROR, says, remedy)
    return Check(name, Level.OK, says)


def refusal(described: Described, mine: Described, hardware: str, results: Path) -> str:
    """Why the machine may not measure; empty if it may.

    ``mine`` is the driver's own description: versions have to be the same, and the locks of the
    releases that it has. ``hardware``: the class that is measured. ``results``: the folder of the
    results, which must not have another machine of that name.
    """
    reasons = []
    if machine.as_label(described.hardware) != hardware:
        reasons.append(f"its hardware is {described.hardware}, not of the class {hardware}")
    folder = results / described.machine
    if os.path.lexists(folder / machine.FILE):
        try:
            machine.keep(folder, described.fields)  # compares: the file is there
        except (SuiteError, OSError) as error:
            reasons.append(str(error))
    if described.ray != mine.ray:
        reasons.append(f"it has Ray {described.ray}, the driver has {mine.ray}")
    others = [one for one, lock in mine.locks.items() if described.locks.get(one) != lock]
    if others:
        reasons.append(
            f"its lock of PyTorch {', '.join(others)} is not the driver's: update its clone"
        )
    if described.suite != mine.suite:
        reasons.append("its suite is not the driver's: update its clone")
    reasons += [
        f"{fault.name}: {fault.says} (remedy: {fault.remedy})"
        for fault in described.faults
        if fault.level is Level.ERROR or fault.name in SPOILING
    ]
    return "; ".join(reasons)


def checkup(
    transport: Transport, releases: Sequence[str], python: str
) -> tuple[dict[str, Described], list[str]]:
    """Inspect every machine in the cluster, beside what is measured there.

    Returns the descriptions by machine, and the faults of the others, in words. A doctor's look
    takes seconds of a processor, so it can disturb a launch that runs. Raises ClusterLost.
    """
    found, faults = transport.machines()
    pieces = {}
    for name in sorted(found):
        order = Order(name, python, tuple(releases))
        pieces[transport.start(order, [name])] = name
    described: dict[str, Described] = {}
    until = time.monotonic() + START_S
    while pieces and time.monotonic() < until:
        for event in transport.hear(1.0):
            name = pieces.get(event.piece, "")
            if isinstance(event.said, Described):
                described[name] = event.said
            elif isinstance(event.said, Failed):
                faults.append(f"{name}: {event.said.reason}")
            elif event.said is None:
                pieces.pop(event.piece, None)
                if event.fault:
                    faults.append(f"{name}: {event.fault}")
    faults += [f"{name}: no answer within {START_S:.0f} s" for name in pieces.values()]
    return described, faults


def class_of(transport: Transport, wanted: str | None) -> str:
    """The class to measure, as a label: the only one in the cluster, or the ``wanted`` one.

    Waits for the first machine. Raises SuiteError where there is no such class, and ClusterLost.
    """
    until = time.monotonic() + JOIN_S
    while not (found := transport.machines())[0]:
        for fault in found[1]:
            raise SuiteError(fault)
        if time.monotonic() > until:
            raise SuiteError(
                "no machine of the cluster has the resource bench; start them with what "
                "torchcompile-suite fleet node prints"
            )
        time.sleep(1.0)
    present = sorted({one.hardware for one in found[0].values()})
    if wanted is None and len(present) > 1:
        raise SuiteError(f"machines of several classes; choose one with --class: {present}")
    if wanted is not None and wanted not in present:
        raise SuiteError(f"no machine of class {wanted}; there are: {', '.join(present)}")
    return wanted or present[0]
