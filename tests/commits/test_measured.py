"""Commits over a real release: overlaid, refused, restored, and measured by real ASV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from evidence import gate
from evidence.wheels import Repository, sources

from torchcompile_suite.commits import journal, overlay
from torchcompile_suite.commits.clone import Clone
from torchcompile_suite.conditions import Overlay
from torchcompile_suite.engine.launches import Refused
from torchcompile_suite.measurement import Status
from torchcompile_suite.releases import catalogue, environments
from torchcompile_suite.results import descriptions, records

from ..conftest import ReleaseEnvironment
from ..shards import Report
from ..test_asv import Checkout

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NEWEST = catalogue.read()[-1]
CELL = r"Inference.*\('softmax_matmul', 1, 'default'\)"
DESCRIBE = (
    "import msgspec, sys; from torchcompile_suite.launch import device;"
    "described = device.describe(device.get('cpu'), 0.0);"
    "sys.stdout.buffer.write(msgspec.json.encode(described.overlay))"
)


class History(NamedTuple):
    """A clone that begins with a release's Python, and commits after it."""

    clone: Clone
    edit: str
    broken: str
    drift: str


@pytest.fixture(scope="module")
def history(newest: ReleaseEnvironment, tmp_path_factory: pytest.TempPathFactory) -> History:
    made = Repository(tmp_path_factory.mktemp("clone") / "pytorch")
    found = sources(environments.packages_in(newest.folder))
    made.begin(NEWEST.version, {path: file for path, file in found.items() if path.endswith(".py")})
    made.append("torch/_inductor/config.py", "\n# edited\n")
    made.write("torch/_inductor/new_in_commit.py", b"new = True\n")
    edit = made.commit("an edit")
    made.append("torch/_inductor/config.py", "\nfrom torch import a_name_it_has_not\n")
    broken = made.commit("does not import")
    made.revert()
    made.write("torch/csrc/dynamo/guards.cpp", b"// another signature\n")
    return History(Clone(made.folder), edit, broken, made.commit("other bindings"))


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Every source of torch, with its inode and time of change."""
    found = sources(environments.packages_in(folder))
    return {path: (file.stat().st_ino, file.stat().st_mtime_ns) for path, file in found.items()}


@pytest.fixture
def folder(newest: ReleaseEnvironment) -> Iterator[Path]:
    yield newest.folder
    journal.restore(newest.folder)
    (newest.folder / journal.JOURNAL).unlink(missing_ok=True)


def test_a_commit_is_overlaid_recorded_and_removed(
    newest: ReleaseEnvironment, history: History, folder: Path
) -> None:
    before = files(folder)
    found = overlay.install(history.clone, history.edit, folder)
    overlaid = ["torch/_inductor/config.py", "torch/_inductor/new_in_commit.py"]
    assert found == Overlay(NEWEST.version, history.edit, overlaid)
    done = newest.run("-c", "import torch._inductor.new_in_commit as new; print(new.new)")
    assert done.stdout.strip() == "True", done.stderr
    done = newest.run("-c", DESCRIBE)
    assert msgspec.json.decode(done.stdout, type=Overlay) == found, done.stderr

    overlay.install(history.clone, history.broken, folder)
    fault = gate.gate(folder)
    assert "cannot import name 'a_name_it_has_not'" in fault
    journal.restore(folder)
    assert files(folder) == before


@pytest.mark.nightly
def test_a_commit_with_other_bindings_needs_leave(history: History, folder: Path) -> None:
    before = files(folder)
    with pytest.raises(Refused, match=r"torch/csrc/dynamo/guards\.cpp.*--allow-native"):
        overlay.install(history.clone, history.drift, folder)
    assert files(folder) == before
    refused = descriptions.overlay(folder)
    assert refused is not None
    assert "guards.cpp" in refused.refused
    allowed = overlay.install(history.clone, history.drift, folder, allow_native_drift=True)
    assert allowed.native == ["torch/csrc/dynamo/guards.cpp"]


@pytest.mark.nightly
def test_asv_measures_commits_and_says_why_not(history: History, tmp_path: Path) -> None:
    """A commit that is measured, one that does not import, and one that is refused."""
    checkout = Checkout(tmp_path)
    checkout.launches = 1
    config = checkout.folder / "asv.commits.conf.json"
    text = config.read_text()
    assert text.count('"../pytorch"') == 1
    config.write_text(text.replace('"../pytorch"', json.dumps(str(history.clone.path))))
    hashes = tmp_path / "hashes"
    hashes.write_text(f"{history.edit}\n{history.broken}\n{history.drift}\n")
    asv = ("--config", config.name)
    said = checkout.asv(*asv, "run", f"HASHFILE:{hashes}", "--bench", CELL, "--quick", status=2)
    assert re.search(r"not measured: .*guards\.cpp", said), said
    assert "differs from PyTorch" in said
    results = tmp_path / "results-commits"
    found = {each.commit: each.measurement for each in records.read(results).records}
    good, bad = found[history.edit[:8]], found[history.drift[:8]]
    assert good.outcome.ok, good.outcome
    assert good.environment is not None
    assert good.environment.overlay is not None
    assert good.environment.overlay.commit == history.edit
    assert bad.outcome.status is Status.CRASH
    assert "guards.cpp" in bad.outcome.reason
    # The first launch finds it.
    broken = found[history.broken[:8]].outcome
    assert not broken.ok
    assert "a_name_it_has_not" in broken.reason
    checkout.asv(*asv, "publish")
    page = (tmp_path / "html-commits" / "index.html").read_text()
    assert "report/index.html" in page
    report = Report(tmp_path / "html-commits" / "report")
    (machine,) = report.machines.values()
    assert report.manifest["noun"] == "commit"
    assert set(machine.entry["points"]) == {one[:8] for one in history[1:]}
    assert "cdn" not in page.lower()
