"""The contract's file, and what counts as a change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from torchcompile_suite.analysis.remedies import guard_of
from torchcompile_suite.cli import contract
from torchcompile_suite.compiled import GraphBreak
from torchcompile_suite.contract import counting, file, judging
from torchcompile_suite.contract.counts import Counts, Root, Site
from torchcompile_suite.contract.file import Contract, Entry
from torchcompile_suite.errors import SuiteError

BREAK = Site('Tensor.item() with "x" \x7f', "model.py, forward", "GB0124", 12, "x.item()")
COUNTS = Counts(2, 30, [BREAK], kernels=3, launches=4, bytes=5120, operators={"addmm float32": 2})


def entry(release: str, counts: Counts = COUNTS, model: str = "model.py:make") -> Entry:
    return Entry.of(model, "default", "cpu", release, counts)


def test_what_is_written_is_read_and_written_alike(tmp_path: Path) -> None:
    path = tmp_path / file.NAME
    file.write(path, [entry("2.15.0+cpu"), entry("2.15.0", model="a.py:make")])
    text = path.read_text()
    assert file.text(file.read(path)) == text
    assert text.index('"a.py:make"') < text.index('"model.py:make"')
    assert "line" not in text.partition("version")[2]
    found = file.read(path).find(entry("2.15").key, "2.15")
    assert found is not None
    assert judging.changes(found.counts, COUNTS) == []


def test_a_guard_is_placed_in_its_own_file(tmp_path: Path) -> None:
    class Frame(NamedTuple):
        file: str
        line: int
        function: str

    def of(*files: str) -> Site:
        captured = [Frame(str(tmp_path / each), 3, "forward") for each in files]
        places = counting._Places(tmp_path, "/t/torch", captured)  # type: ignore[arg-type]
        guard = "n == 1  # return x * n  # lib/model.py:7 in of"
        return places.guard(GraphBreak(guard, "model.py:3"))

    assert of("app/model.py", "lib/model.py").where == "lib/model.py, of"
    assert of("app/model.py").where == "app/model.py, forward", "the file of the guard is not known"


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (
            "___check_type_id(L['cfg'], 94223), type=<class 'a.B'>  # c.x  # m.py:3 in f",
            "___check_type_id(L['cfg'], #), type=<class 'a.B'>",
        ),
        ("___check_obj_id(list(self.of)[0], 9480384)", "___check_obj_id(list(self.of)[0], #)"),
        ("len(self.seen) == 4", "len(self.seen) == 4"),
    ],
)
def test_a_guard_has_no_address(tmp_path: Path, reason: str, says: str) -> None:
    """An address differs in each process, and equal counts give equal bytes."""
    places = counting._Places(tmp_path, "/t/torch", [])
    site = places.guard(GraphBreak(reason, "m.py:3"))
    assert site.reason == says
    # A contract that has the address is kept.
    assert site.guard == Site(guard_of(reason)).guard


def test_a_recompile_without_a_reason_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / file.NAME
    silent = msgspec.structs.replace(COUNTS, recompiles=[Site("", "model.py, forward")])
    file.write(path, [entry("2.15.0", silent)])
    assert file.read(path).entries[0].counts.recompiles == silent.recompiles


def test_releases_with_the_same_counts_share_an_entry() -> None:
    other = msgspec.structs.replace(COUNTS, kernels=9)
    more = msgspec.structs.replace(COUNTS, guards=300)
    for order in (("2.4.1", "2.9.1", "2.15.0"), ("2.15.0", "2.4.1", "2.9.1")):
        counts = {"2.4.1": COUNTS, "2.9.1": more, "2.15.0": other}
        contract = Contract()
        for release in order:
            contract = contract.updated([entry(release, counts[release])])
        assert [each.torch for each in contract.entries] == [("2.4", "2.9"), ("2.15",)]
        assert contract.entries[0].guards == {"2.4": 30, "2.9": 300}
    # A release without an entry is held to the newest older one.
    key = entry("2.16").key
    assert contract.find(key, "2.16").torch == ("2.15",)  # type: ignore[union-attr]
    assert contract.find(key, "2.10").counts.guards == 300  # type: ignore[union-attr]
    assert contract.find(key, "2.1").torch == ("2.4", "2.9")  # type: ignore[union-attr]
    # A release whose counts change leaves the others alone.
    changed = contract.updated([entry("2.9.1", other)])
    assert [each.torch for each in changed.entries] == [("2.4",), ("2.9", "2.15")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("version = 1\n[[entry", "cannot be read"),
        ("version = 9\n", "has version 9"),
        ("version = 1\n[[entry]]\nmodel = 3\n", "is no contract"),
        ('version = 1\nentry = ["x"]\n', "is no contract"),
        (
            'version = 1\n[[entry]]\nmodel = "a"\ncall = "b"\ndevice = "cpu"\n'
            "graphs = 1\nguards = {}\n",
            "no guards",
        ),
        (
            'version = 1\n[[entry]]\nmodel = "a"\ncall = "b"\ndevice = "cpu"\n'
            'graphs = 1\nguards = { "newest" = 1 }\n',
            "is no contract: Invalid version",
        ),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / file.NAME
    path.write_text(content)
    with pytest.raises(SuiteError, match=says) as raised:
        file.read(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("self.count == 0", "self.calls == 3", True),
        ("L['self'].count == 0", "L['model'].calls == 0", True),
        (
            "tensor 'L['x']' size mismatch at index 0. expected 4, actual 5",
            "tensor 'ids' size mismatch at index 0. expected 1, actual 9",
            True,
        ),
        ("tensor 'x' size mismatch at index 0", "tensor 'x' size mismatch at index 1", False),
        ("len(self.cache) == 2", "len(self.seen) == 4", True),
        ("len(self.cache) == 2", "self.cache == 2", False),
        ("tensor 'x' size mismatch at index 0", "tensor 'x' dtype mismatch", False),
    ],
)
def test_a_guard_is_the_same_whatever_it_is_called(one: str, other: str, same: bool) -> None:
    assert (Site(one).guard == Site(other).guard) is same


def test_a_failure_has_twenty_lines_at_most() -> None:
    breaks = [Site(f"reason {'x' * number}", "m.py, f", "", number) for number in range(1, 40)]
    found = judging.changes(COUNTS, msgspec.structs.replace(COUNTS, graph_breaks=breaks))
    lines = judging.told("head", found, "foot").splitlines()
    assert len(lines) <= 20
    assert lines[0] == "head"
    assert lines[-1] == "foot"
    assert "more" in lines[-2]


def test_a_limit_of_a_mark_is_told_with_what_is_beyond_it() -> None:
    assert judging.beyond(COUNTS, {"max_graphs": 2, "max_recompiles": 0}) == []
    (graphs,) = judging.beyond(COUNTS, {"max_graphs": 1})
    assert graphs.what == "graphs: 2, and max_graphs=1"
    (graphs,) = judging.beyond(COUNTS, {"max_graphs": 1.5})
    assert graphs.what == "graphs: 2, and max_graphs=1.5"
    nothing = msgspec.structs.replace(COUNTS, graphs=0, graph_breaks=[], kernels=None)
    assert [
        each.what for each in judging.beyond(nothing, {"fullgraph": True, "max_kernels": 3})
    ] == [
        "graphs: 0, and fullgraph=True: nothing was compiled",
        "kernels: not known of this code, and max_kernels=3",
    ]
    (broken,) = judging.beyond(COUNTS, {"fullgraph": True})
    assert broken.what.startswith("+ graph break: GB0124 Tensor.item()")
    assert broken.details[0] == "at model.py:12 in forward: x.item()"


@pytest.mark.parametrize("limit", judging.LIMITS)
def test_a_limit_holds_at_its_number_and_not_below(limit: str) -> None:
    sites = [Site("one"), Site("other")]
    counts = msgspec.structs.replace(COUNTS, recompiles=sites, cudagraph_skips=sites)
    name = judging.LIMITS[limit]
    number = counts.number(name)
    assert number
    assert judging.beyond(counts, {limit: number}) == []
    found = judging.beyond(counts, {limit: number - 1})
    assert found[0].what == f"{name.replace('_', ' ')}: {number}, and {limit}={number - 1}"


# Counts without torch.
UNRECORDED = """
import sys
from types import SimpleNamespace

import pytest

from torchcompile_suite.contract.counting import Counting
from torchcompile_suite.contract.counts import Counts

sys.modules["torch"] = SimpleNamespace(__version__="2.15.0")


@pytest.fixture
def hold(compile_contract):
    counting = Counting()
    counting.counts = Counts(2)
    return lambda: compile_contract._hold("block", counting)


def test_recorded(hold):
    hold()


@pytest.mark.compile_contract(recorded=False, max_graphs=2)
def test_within(hold):
    hold()


@pytest.mark.compile_contract(recorded=False, max_graphs=1)
def test_beyond(hold):
    hold()
"""


def test_a_test_that_is_not_recorded_has_limits_and_no_entry(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(UNRECORDED)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    for options in (("--compile-contract=update",), ()):
        done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
        assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
        assert "graphs: 2, and max_graphs=1" in done.stdout
        models = [entry.model for entry in file.read(tmp_path / file.NAME).entries]
        assert models == ["test_it.py::test_recorded"]


def test_a_model_is_named_from_the_contract_and_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("sub", "contract.toml")
    names = {
        "model.py:make": "../model.py:make",
        "sub/other.py:make": "other.py:make",
        "package.module:make": "package.module:make",
    }
    for text, name in names.items():
        assert contract._named(text, path) == name
        assert contract._from_here(name, path) == text
    assert contract._update("a b.py:make", path) == (
        "torchcompile-suite contract update 'a b.py:make' --file sub/contract.toml"
    )


def test_places_are_the_users_and_relative() -> None:
    root = Root("/home/me/project", "/home/me/project/.venv/lib/site-packages/torch")
    package = "/home/me/project/.venv/lib/site-packages/transformers/models/bert.py"
    own = "/home/me/project/src/model.py"
    torch = "/home/me/project/.venv/lib/site-packages/torch/nn/modules/linear.py"
    assert root.innermost([own, package, torch]) == 0
    assert root.innermost([package, torch]) == 0
    assert root.innermost([torch]) is None
    assert root.name(own) == "src/model.py"
    assert root.name(package) == "transformers/models/bert.py"
    assert root.name("/elsewhere/x.py") == "x.py"
