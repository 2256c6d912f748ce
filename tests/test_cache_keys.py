"""A change of the code shows at once: no cache serves what an older rule has computed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.measurement import METHOD
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import cached, records, sealing

from . import examples
from .conftest import ROOT

NEWER = "found[cell].order < entry.order"
OLDER = NEWER.replace("<", ">")

# What `asv publish` stages for ASV, and the folder of the package that made it.
EXPORT = """
import json, sys
from pathlib import Path
import torchcompile_suite
from torchcompile_suite.asv import export, repository
results = Path("results").absolute()
machines = [results / "box" / "machine.json"]
package = Path("benchmarks").absolute()
(file,) = export.derive(results, machines, repository.in_ledger(), package, [])
row = json.loads(file.content)["results"]["inference.Inference.track_latency"]
print(json.dumps([number for number in row[0] if isinstance(number, float)]))
"""

# The modules that decide on a figure: what the report, the site and the export import.
IMPORTED = """
import sys
from torchcompile_suite.asv import export, publish
from torchcompile_suite.cli import app
from torchcompile_suite.site import build
for name, module in sys.modules.items():
    if name.partition(".")[0] == "torchcompile_suite":
        print(module.__file__)
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a cell that a machine has measured twice: 30 ms a call, then 60 ms."""
    folder = tmp_path / "clone"
    source = "src/torchcompile_suite"
    shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "asv.conf.json", folder)
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    box = folder / "results" / "box"
    box.mkdir(parents=True)
    (box / "machine.json").write_text(json.dumps({"machine": "box", "cpu": "x", "version": 1}))
    shutil.copy2(ROOT / "results" / "benchmarks.json", folder / "results")
    file = records.path(box, ledger.commit_of()["2.9.1"], "virtualenv-py3.11")
    for hour, scale in enumerate((1.0, 2.0), 1):
        made = examples.measurement(scale=scale)
        launches = [msgspec.structs.replace(one, method=METHOD) for one in made.launches]
        at = f"2026-11-21T{hour:02}:00:00+00:00"
        records.append(file, msgspec.structs.replace(made, launches=launches, started_at=at))
    sealing.seal(box)
    return folder


def ran(clone: Path, *arguments: str) -> str:
    """What the clone's own package prints. Its cache is kept from call to call."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(clone / "src"),
        "XDG_CACHE_HOME": str(clone / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=clone, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(clone: Path) -> list[list[float]]:
    """Seconds a call, as the report and the export for ASV have them."""
    report = ("-m", "torchcompile_suite", "report", "v2.9", "--machine", "box", "--format", "json")
    (row,) = json.loads(ran(clone, *report))
    return [row["latency_s"][:1], json.loads(ran(clone, "-c", EXPORT))]


def test_another_rule_for_the_newest_measurement_shows_at_once(clone: Path) -> None:
    (newest,), (exported,) = figures(clone)
    assert exported == pytest.approx(newest, rel=0.01)
    assert [[newest], [exported]] == figures(clone), "from the cache"
    file = clone / "src" / "torchcompile_suite" / "results" / "records.py"
    text = file.read_text()
    assert text.count(NEWER) == 1
    file.write_text(text.replace(NEWER, OLDER))
    (oldest,), (exported,) = figures(clone)
    assert newest == pytest.approx(2 * oldest, rel=0.01)
    assert exported == pytest.approx(oldest, rel=0.01)


def test_every_file_that_decides_on_a_figure_is_part_of_the_key(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = clone / "src" / "torchcompile_suite"
    files = {Path(line) for line in ran(clone, "-c", IMPORTED).splitlines()}
    assert {package / "results" / "records.py", package / "site" / "shards.py"} < files
    assert len(files) > 100
    # The tables that the modules read lie beside them.
    files |= {one for one in package.rglob("*") if one.suffix in (".toml", ".csv")}
    versions = set()
    for file in [None, *files]:
        if file is not None:
            with file.open("a") as stream:
                stream.write("\n# another rule\n")
        cached.version.cache_clear()
        versions.add(cached.version(package))
    cached.version.cache_clear()
    assert len(versions) == len(files) + 1
