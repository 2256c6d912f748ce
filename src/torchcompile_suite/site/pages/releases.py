"""The page of the releases: the target of ASV's commit links."""

from __future__ import annotations

from ...releases import ledger
from ...releases.catalogue import Release
from .. import paths
from ..content import Content, label
from ..page import Folded, Link, Page, Section, Table, Value
from . import payoff


def pages(content: Content) -> list[Page]:
    """All releases on one page, newest first. A fragment is 8 digits of a ledger commit."""
    commits = {release.version: sha for sha, release in ledger.compute()[0].items()}
    return [
        Page(
            paths.RELEASES,
            "releases",
            "Releases",
            [
                f"{len(content.releases)} releases of PyTorch can be measured. Each release is a "
                "commit of the suite's ledger, with every package pinned. The commits are the same "
                "on every machine."
            ],
            [],
            [
                _section(content, release, commits[release.version])
                for release in reversed(content.releases)
            ],
            [
                {
                    "version": release.version,
                    "date": release.date.isoformat(),
                    "ledger_commit": commits[release.version],
                    "upstream_tag": release.tag,
                    "git_version": git_version(content, release),
                    "pythons": " ".join(release.pythons),
                }
                for release in content.releases
            ],
        )
    ]


def git_version(content: Content, release: Release) -> str:
    """PyTorch's own commit, from the catalogue or from a measurement; empty if unknown."""
    if release.git_version:
        return release.git_version
    return next(
        (
            environment.torch_git
            for machine in content.machines
            for measurement in machine.measurements(release.version)
            if (environment := measurement.environment) is not None
        ),
        "",
    )


def _section(content: Content, release: Release, commit: str) -> Section:
    lines: list[list[Value]] = [
        ["version", release.version],
        ["uploaded", release.date.date().isoformat()],
        ["upstream tag", release.tag],
        ["upstream commit", git_version(content, release) or "not recorded"],
        ["ledger commit", commit],
        ["Pythons with wheels", ", ".join(release.pythons)],
    ]
    lines += [
        ["measured on", Link(machine.name, payoff.path(machine, release.version))]
        for machine in content.machines
        if release.version in machine.releases
    ]
    table = Table(f"PyTorch {release.version}.", ["property", "value"], frozenset(), lines)
    lock = release.lock.read_text() if release.lock.is_file() else ""
    folded = Folded("The lock file: every package of the environment", lock) if lock else None
    return Section(f"PyTorch {label(release.version)}", commit[:8], tables=[table], folded=folded)
