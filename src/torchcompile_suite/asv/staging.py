"""The sound files of results/, in a temporary folder that ASV reads instead.

ASV stops at the first file that it cannot read. So `asv publish`, `asv compare` and `asv show` read
a folder of links to the sound files only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..releases import ledger
from ..results import asv_files, regular
from .errors import user_errors
from .repository import of_releases


class Staged(NamedTuple):
    """What the checks found, and the folder of results itself."""

    checked: asv_files.Checked
    results: Path


@contextmanager
def staged(conf: Any) -> Iterator[Staged]:
    """While it is entered, ``conf.results_dir`` has links to the sound files only.

    Raises ASV's UserError.
    """
    results = Path(conf.results_dir)
    with user_errors():
        commits = ledger.compute()[0] if of_releases(conf) else None
        checked = asv_files.check(results, commits)
    with tempfile.TemporaryDirectory(prefix="torchcompile-suite-results-") as folder:
        with user_errors():
            for file in sorted(checked.files):
                _link(file, Path(folder, file.parent.name, file.name))
            if regular.is_regular(results / asv_files.BENCHMARKS):
                _link(results / asv_files.BENCHMARKS, Path(folder, asv_files.BENCHMARKS))
        conf.results_dir = folder
        try:
            yield Staged(checked, results)
        finally:
            conf.results_dir = str(results)


def _link(file: Path, link: Path) -> None:
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(file.resolve())
