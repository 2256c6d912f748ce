"""What a machine must be like to take part: the same suite, and nothing that spoils numbers."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from ..doctor import Check, Level, error, gpus, hardware, software
from ..host import machine
from ..releases import catalogue, environments, room
from ..releases.catalogue import Release
from . import place
from .messages import Described, Fault, Order

# Warnings of the doctor that mean wrong numbers here: nobody sits in front of the machine.
SPOILING = frozenset({"other load", "cores", gpus.PROCESSES})
# A process that ends within seconds is no load; Ray itself has just started one.
LOOKS = 3
PACKAGE = Path(__file__).resolve().parents[1]


def suite() -> str:
    """The digest of the suite's source: machines with another one measure by another method."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{file.relative_to(PACKAGE)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def locks(releases: Iterable[str]) -> dict[str, str]:
    """The digest of each release's lock and extras; a release that is unknown here is missing."""
    known = {release.version: release for release in catalogue.everything()}
    return {one: _digest(known[one]) for one in releases if one in known}


def _digest(release: catalogue.Release) -> str:
    return hashlib.sha256(environments.digest(release).encode()).hexdigest()[:16]


def ray_version() -> str:
    """The version of Ray that is installed beside the suite; empty if there is none."""
    try:
        return metadata.version("ray")
    except metadata.PackageNotFoundError:
        return ""


def described(order: Order, found: Sequence[Fault] = ()) -> Described:
    """What this machine is. ``found``: the `faults` of the doctor."""
    fields = machine.fields(order.machine)
    return Described(
        machine=order.machine,
        hardware=machine.class_of(fields),
        fields=fields,
        suite=suite(),
        locks=locks(order.releases),
        ray=ray_version(),
        python=platform.python_version(),
        journals=place.journals(order.machine),
        faults=list(found),
    )


def faults(order: Order, priority: str) -> list[Fault]:
    """What the doctor finds on this machine, in seconds. ``priority``: what `node.restore` says."""
    found = [] if not priority else [error("priority", priority, "see docs/fleet.md")]
    found += [check for check in _checks(order) if check.level is not Level.OK]
    return [Fault(check.name, check.level, check.says[:4000], check.remedy) for check in found]


def _checks(order: Order) -> Iterator[Check]:
    yield from software.caches()
    releases = _known(order.releases)
    if releases:
        yield software.compiler({"include": _include(releases, order.python)})
        yield _releases(releases, order.python)
    for left in reversed(range(LOOKS)):
        checks = list(hardware.checks())
        busy = any(check.name == "other load" and check.level is not Level.OK for check in checks)
        if not busy or not left:
            yield from checks
            return


def _known(versions: Sequence[str]) -> list[Release]:
    return [one for one in catalogue.everything() if one.version in versions]


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
            return error(name, says, "leave this release out")
    says = room.line(releases, python)
    if not room.fit_together(releases, python):
        remedy = "free space, measure fewer releases, or set TORCHCOMPILE_SUITE_ENVIRONMENTS"
        return error(name, says, remedy)
    return Check(name, Level.OK, says)


def refusal(described: Described, mine: Described, releases: Sequence[str], hardware: str) -> str:
    """Why the machine may not measure; empty if it may.

    ``mine`` is the driver's own description: versions have to be the same. ``hardware``: the class
    that is measured.
    """
    reasons = []
    if machine.as_label(described.hardware) != hardware:
        reasons.append(f"its hardware is {described.hardware}, not of the class {hardware}")
    if described.ray != mine.ray:
        reasons.append(f"it has Ray {described.ray}, the driver has {mine.ray}")
    others = [one for one in releases if described.locks.get(one) != mine.locks.get(one)]
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
