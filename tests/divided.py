"""Results of a fleet: machines of one class, between which the cells are divided."""

from __future__ import annotations

import json
from pathlib import Path

from torchcompile_suite.modes import MODES
from torchcompile_suite.releases import ledger
from torchcompile_suite.results import records

from . import examples

RELEASES = ("2.4.1", "2.9.1", "2.15.0")
# Machine -> workload -> its releases there. Two machines of a class have resnet18, the second one
# in one release only. The third machine has other hardware.
MEASURED: dict[str, dict[str, tuple[str, ...]]] = {
    "box.one": {"resnet18": RELEASES},
    "box.two": {"resnet18": RELEASES[:1], "vit_tiny_patch16_224": RELEASES},
    "other": {"resnet18": RELEASES},
}
CLASS = "class:box-2c-8g-cpu"
# Workload -> the machine that has it most completely.
HOMES = {"resnet18": "box.one", "vit_tiny_patch16_224": "box.two"}


def write(results: Path) -> None:
    """Fill the folder of results."""
    commits = ledger.commit_of()
    facts = {"cpu": "Box", "num_cpu": "2", "ram": "8 GiB", "device": "cpu"}
    for name, of_machine in MEASURED.items():
        folder = results / name
        folder.mkdir(parents=True)
        own = {**facts, "machine": name, "num_cpu": "4" if name == "other" else "2"}
        (folder / "machine.json").write_text(json.dumps(own))
        for workload, releases in of_machine.items():
            for release in releases:
                file = records.path(folder, commits[release], "virtualenv-py3.11")
                for mode in MODES:
                    # Each model has ratios of its own.
                    made = examples.measurement(workload, mode=mode, scale=len(workload) / 10)
                    records.append(file, examples.at(release, made))
