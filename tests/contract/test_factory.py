"""Counts of a model that is named on the command line, in a real release."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.contract import factory

from ..conftest import ReleaseEnvironment
from ..examples import network

MODEL = f"""{network("return x.relu() + 1")}

def plain(batch_size=2):
    return Net(), torch.randn(batch_size, 3)

def dynamic(batch_size=2):
    return torch.compile(Net(), dynamic=True), torch.randn(batch_size, 3)

def fixed():
    return Net(), torch.randn(4, 3)

class Changing(torch.nn.Module):
    def forward(self, x, many):
        many.append(x.mul_(0.5))
        return x + len(many)

def changing():
    return Changing(), (torch.randn(4, 3), [torch.randn(4, 3)])

class Filled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        assert self.calls == 0, "the table is full"
        self.calls = 1
        return x + 1

    def empty(self):
        self.calls = 0

def filled():
    module = Filled()
    return module, torch.randn(4, 3), module.empty

def exported():
    return torch.export.export(Net(), (torch.randn(4, 3),)).module(), torch.randn(4, 3)
"""
COUNT = """
import sys
import msgspec
from torchcompile_suite.contract import factory
from torchcompile_suite.trial import target

folder, *lines = sys.argv[1:]
for line in lines:
    name, sizes, options = msgspec.json.decode(line)
    wanted = target.parse(f"{folder}/model.py:{name}")
    order = factory.Order(wanted, folder, tuple(sizes), options)
    print(msgspec.json.encode(factory.count(order)).decode())
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_model_is_counted_as_its_user_compiles_it(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    asked: list[tuple[str, list[int], dict[str, object]]] = [
        ("plain", [2, 4, 8], {}),
        ("dynamic", [2, 4, 8], {}),
        ("dynamic", [2], {"mode": "reduce-overhead"}),
        ("fixed", [4], {}),
        ("fixed", [8], {}),
        ("changing", [4], {}),
        ("filled", [4], {}),
        ("exported", [4], {}),
    ]
    orders = [msgspec.json.encode(one).decode() for one in asked]
    done = newest.run("-c", COUNT, str(tmp_path), *orders, timeout=250)
    assert done.returncode == 0, done.stderr
    found = [msgspec.json.decode(line, type=factory.Counted) for line in done.stdout.splitlines()]
    graphs = [one.counts.graphs if one.counts else one.error for one in found]
    # With sizes that change, the second capture has a dynamic size.
    assert graphs[:2] == [2, 1]
    # What a call changes is put back for the next one.
    assert graphs[5:] == [1, 1, 1]
    assert "is compiled already: leave out" in str(graphs[2])
    assert graphs[3] == 1
    assert "decides its batch size (4) itself" in str(graphs[4])
