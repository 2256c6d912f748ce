"""Does the Python of one release run over the binary of its neighbour? All pairs of neighbours.

Each release is installed once. The Python of the next release replaces its Python, as that of a
commit would, whether the suite would refuse the pair or not. Each pair is appended as a line to
``evidence/overlays.jsonl``. An interrupted run goes on where it stopped; delete the file to measure
again. Takes ten minutes and a download of each release.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import msgspec

from torchcompile_suite.cli.history import newest_patches
from torchcompile_suite.commits import journal, overlay
from torchcompile_suite.commits.clone import Difference
from torchcompile_suite.commits.overlay import changed_files
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.releases import catalogue, environments
from torchcompile_suite.releases.catalogue import Release

from . import gate, tables
from .collect import ROOT
from .wheels import sources

FOLDER = ROOT / ".asv" / "overlays-env"
KEPT = Path(__file__).with_name("overlays.jsonl")


class Pair(msgspec.Struct):
    """The Python of the next release over the binary of a release.

    ``python``: Python files that differ; ``native``: compiled files that differ; ``needed``: those
    of them that the Python needs; ``fault``: what fails if the pair is allowed, empty if nothing;
    ``seconds``: time to write the files and to find the fault.
    """

    base: str
    over: str
    python: int
    native: int
    needed: list[str]
    fault: str
    seconds: float


def measure(base: Release, over: Release, files: dict[str, Path]) -> Pair:
    """Overlay ``base`` with the Python of ``over``, whose sources are ``files``."""
    overlay.install_base(base, FOLDER)
    packages = environments.packages_in(FOLDER)
    before = sources(packages)
    differences = [
        Difference(path, path in files)
        for path in sorted(before.keys() | files.keys())
        if path not in files
        or path not in before
        or before[path].read_bytes() != files[path].read_bytes()
    ]
    changed = changed_files(differences, lambda path: (packages / path).is_file())
    started = time.monotonic()
    journal.apply(
        FOLDER,
        base.version,
        ((file.path, files[file.path].read_bytes()) for file in changed.python if file.there),
        [file.path for file in changed.python],
    )
    fault = gate.gate(FOLDER)
    journal.restore(FOLDER)
    return Pair(
        base.version,
        over.version,
        len(changed.python),
        len(changed.native),
        changed.needed[:5],
        fault,
        round(time.monotonic() - started, 1),
    )


def measure_missing() -> None:
    """Measure the missing pairs, newest first."""
    known = {(pair.base, pair.over) for pair in read_lines(KEPT, Pair)}
    pairs = list(pairwise(newest_patches(catalogue.read())))
    missing = [pair for pair in reversed(pairs) if (pair[0].version, pair[1].version) not in known]
    for base, over in missing:
        print(f"{over.version} over {base.version}", flush=True)
        with tempfile.TemporaryDirectory(prefix="overlays-") as scratch:
            overlay.install_base(over, FOLDER)
            # Copies, because the next installation removes the originals.
            files = {}
            for path, file in sources(environments.packages_in(FOLDER)).items():
                files[path] = Path(scratch, path)
                files[path].parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, files[path])
            append_line(KEPT, msgspec.json.encode(measure(base, over, files)))
    shutil.rmtree(FOLDER, ignore_errors=True)


def table() -> list[tables.Part]:
    """A line for each pair, oldest first."""
    kept = read_lines(KEPT, Pair)
    numbers = ["Python files that differ", "native", "s"]
    columns = ["base", "Python of", *numbers[:2], "verdict", "what fails if allowed", numbers[2]]
    lines = [
        [
            pair.base,
            pair.over,
            f"{pair.python:,}",
            f"{pair.native:,}",
            "refused: native drift" if pair.needed else "allowed",
            pair.fault or "nothing",
            f"{pair.seconds:.0f}",
        ]
        for pair in sorted(kept, key=lambda pair: catalogue.find(pair.base).key)
    ]
    return [Sheet(columns, frozenset(numbers), lines)]


if __name__ == "__main__":
    tables.run("overlays", table, measure_missing)
