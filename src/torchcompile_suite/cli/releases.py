"""``torchcompile-suite releases``: the ledger of releases and nightlies, and their environments."""

from __future__ import annotations

from pathlib import Path

import click

from ..presentation.sheets import Sheet
from ..presentation.terminal import Output
from ..presentation.wording import printable
from ..releases import adoption, catalogue, environments, ledger, room
from .app import Commands

app = Commands("releases", help="The PyTorch releases that can be compared.")


@app.command("list")
def list_() -> None:
    """Show all releases, with their tags and commits for ASV's commands.

    Example: torchcompile-suite releases list
    """
    commits, tags = ledger.compute()
    lines = []
    for sha, release in commits.items():
        own_tags = sorted((tag for tag, commit in tags.items() if commit == sha), key=len)
        pythons = release.usable_pythons
        lines.append(
            [
                " ".join(own_tags),
                release.version,
                f"{release.date:%Y-%m-%d}",
                f"{pythons[0]} - {pythons[-1]}",
                (release.git_version or "unknown")[:8],
                sha[:8],
            ]
        )
    columns = ["tags", "version", "date", "pythons", "upstream", "ledger"]
    Output().draw(Sheet(columns, frozenset(), lines))


@app.command()
@click.argument("versions", nargs=-1, help="Releases, such as v2.4 2.9.0. Default: all.")
def verify(versions: tuple[str, ...]) -> None:
    """Install each release's lock in a temporary environment and import it.

    Example: torchcompile-suite releases verify v2.4 v2.15
    """
    failed = False
    releases = [catalogue.find(name) for name in versions or []] or catalogue.read()
    for proof in map(environments.verify, releases):
        failed |= not proof.ok
        status = "ok" if proof.ok else "FAILED"
        click.echo(f"{proof.release.tag}  {status}  {proof.seconds:.0f} s  {proof.line}")
    if failed:
        raise SystemExit(1)


@app.command()
@click.argument("version", help="A release, such as 2.9.0.")
def lock(version: str) -> None:
    """Write the lock of a release, or confirm the existing one. A published lock never changes.

    Example: torchcompile-suite releases lock 2.15.0
    """
    from ..releases import locking

    release = catalogue.find(version)
    new = locking.write(release, locking.resolve(release), published=True)
    click.echo(f"{release.lock.name}: {'written' if new else 'confirmed, unchanged'}")


@app.command()
@click.argument("versions", nargs=-1, required=True, help="Nightlies, such as 2.16.0.dev20261120.")
@click.option("--index-url", help="Simple index of the nightlies. Default: the configured one.")
def add(versions: tuple[str, ...], index_url: str | None) -> None:
    """Add nightlies to the ledger's `nightly` branch, each with its lock and upstream commit.

    Each nightly is installed once, as a proof. To measure it: asv run v2.16.0.dev20261120^!
    Example: torchcompile-suite releases add 2.16.0.dev20261118 2.16.0.dev20261120
    """
    from ..releases import index

    index.add_nightlies(
        versions,
        index_url,
        added=lambda one: click.echo(f"added {one.tag}, upstream commit {one.git_version}"),
    )


@app.command()
@click.argument("python", type=click.Path(path_type=Path), help="The Python of your environment.")
def adopt(python: Path) -> None:
    """Measure with the torch that you have installed, where its release would be installed.

    Nothing is downloaded, and your environment does not change. `asv run`, `history` and `try
    --release` use it until `releases remove`. Its results say that it is not from the release's
    lock. Example: torchcompile-suite releases adopt ~/venv/bin/python
    """
    release, build, program = adoption.adopt(python.absolute())
    commit = ledger.commit_of()[release.version][:8]
    minor = program.parent.parent.name.rpartition("-py")[2]
    click.echo(f"torch {build} stands for {release.tag} (ledger {commit}); to measure with it:")
    click.echo(f"  torchcompile-suite try resnet18 --release {release.tag}")
    click.echo(f"  asv run -E torch-release:{minor} {release.tag}^!")


@app.command()
def installed() -> None:
    """List the environments on disk and their sizes.

    Example: torchcompile-suite releases installed
    """
    lines = []
    for one in environments.installed():
        sizes = (f"{size / 1e9:.1f} GB" for size in (one.own_bytes, one.linked_bytes))
        lines.append([one.name, *sizes])
    columns = ["environment", "own", "linked from uv's cache"]
    Output().draw(Sheet(columns, frozenset(columns[1:]), lines))
    click.echo(
        f"in {environments.root()}; {environments.free_bytes() / 1e9:.0f} GB of the disk are free"
    )


@app.command("sizes")
def sizes_command() -> None:
    """Record what the packages of the installed releases take on disk, for those that lack it.

    `history` plans with these sizes. For maintainers, after a release is added and installed.
    Example: torchcompile-suite releases sizes
    """
    new = room.record((one.folder for one in environments.installed()), room.SIZES)
    click.echo(f"{room.SIZES.name}: {', '.join(new) or 'nothing new'}")


@app.command()
@click.argument("versions", nargs=-1, required=True, help="Releases, such as v2.4 2.9.0.")
def remove(versions: tuple[str, ...]) -> None:
    """Remove the environments of releases, and their large packages from uv's cache.

    uv's cache loses torch, triton and CUDA's packages of all versions. Environments that exist
    keep them; a new one downloads them again.

    Example: torchcompile-suite releases remove v2.4
    """
    releases = [catalogue.find(version) for version in versions]
    before = environments.free_bytes()
    for release in releases:
        if fault := room.remove(release):
            click.echo(printable(fault), err=True)
    freed = environments.free_bytes() - before
    names = ", ".join(release.version for release in releases)
    click.echo(f"removed: {names}; {max(0, freed) / 1e9:.1f} GB were freed")


@app.command()
def update() -> None:
    """Look for new final releases in the package index, and append them, each with its lock.

    Each is installed once, to prove its lock. A release whose upload is not complete has to wait.

    Example: torchcompile-suite releases update
    """
    # Imported here: the client of the index takes a second, and `list` must not wait for it.
    from ..releases import index

    new = index.update(
        say=lambda line: click.echo(printable(line), err=True),
        added=lambda one: click.echo(f"added {one.tag}, released {one.date:%Y-%m-%d}"),
    )
    if not new:
        click.echo(f"no release to add; the newest is {catalogue.newest().version}")
