"""Does one release's Python run over its neighbour's binary? All neighbouring minor releases.

Each release is installed once; the Python of the next one is laid over it, as a commit's would be,
whether that would be refused or not. Appends a line a pair to ``evidence/overlays.jsonl`` and
goes on where it was interrupted; delete that to measure anew. Ten minutes and a download of each.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from torchcompile_suite.cli.history import newest_patches
from torchcompile_suite.commits import overlay
from torchcompile_suite.commits.clone import Difference
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.releases import catalogue
from torchcompile_suite.releases.catalogue import Release

from .pools import ROOT
from .wheels import sources

FOLDER = ROOT / ".asv" / "overlays-env"
FOUND = Path(__file__).with_name("overlays.jsonl")


class Pair(msgspec.Struct):
    """The next release's Python over a release's binary. ``fault`` is empty where it would work if
    the drift were allowed; ``seconds`` for laying it and finding that out.
    """

    base: str
    over: str
    python: int
    native: int
    needed: list[str]
    fault: str
    seconds: float


def measure(base: Release, over: Release, files: dict[str, Path]) -> Pair:
    """Lay ``over``, whose sources are ``files``, over ``base``."""
    overlay.install_base(base, FOLDER)
    packages = overlay.packages_of(FOLDER)
    before = sources(packages)
    differences = [
        Difference(path, path in files)
        for path in sorted(before.keys() | files.keys())
        if path not in files
        or path not in before
        or before[path].read_bytes() != files[path].read_bytes()
    ]
    plan = overlay.plan(differences, lambda path: (packages / path).is_file())
    started = time.monotonic()
    overlay.lay(
        FOLDER,
        base,
        ((each.path, files[each.path].read_bytes()) for each in plan.files if each.there),
        [each.path for each in plan.files],
    )
    fault = overlay.gate(FOLDER)
    overlay.restore(FOLDER)
    return Pair(
        base.version,
        over.version,
        len(plan.files),
        len(plan.native),
        plan.needed[:5],
        fault,
        round(time.monotonic() - started, 1),
    )


def read() -> list[Pair]:
    """The pairs that were measured."""
    return read_lines(FOUND, Pair)


def main() -> None:
    """Measure what is missing, newest pair first, and print the table."""
    known = {(each.base, each.over) for each in read()}
    pairs = list(pairwise(newest_patches(catalogue.read())))
    missing = [pair for pair in reversed(pairs) if (pair[0].version, pair[1].version) not in known]
    for base, over in missing:
        print(f"{over.version} over {base.version}", flush=True)
        with tempfile.TemporaryDirectory(prefix="overlays-") as scratch:
            overlay.install_base(over, FOLDER)
            # The next installation takes them away.
            files = {}
            for path, file in sources(overlay.packages_of(FOLDER)).items():
                files[path] = Path(scratch, path)
                files[path].parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, files[path])
            append_line(FOUND, msgspec.json.encode(measure(base, over, files)))
    shutil.rmtree(FOLDER, ignore_errors=True)
    table = Table(title="The next release's Python over a release's binary")
    for name in ("base", "Python of", "Python files", "native", "verdict", "if allowed", "s"):
        table.add_column(name)
    for each in sorted(read(), key=lambda each: catalogue.find(each.base).key):
        table.add_row(
            each.base,
            each.over,
            str(each.python),
            str(each.native),
            "refused: native drift" if each.needed else "laid",
            each.fault or "works",
            f"{each.seconds:.0f}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
