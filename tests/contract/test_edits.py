"""Changes that a contract catches, and harmless edits that it does not, in three projects."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torchcompile_suite.contract import factory, file
from torchcompile_suite.contract.file import Entry

from ..conftest import ReleaseEnvironment
from . import edits
from .edits import PROJECTS, Edit

HERE = Path(__file__).parent


def folder_of(edit: Edit) -> str:
    return f"{edit.project} {edit.name}"


def make(edit: Edit, root: Path) -> Path:
    """A copy of the project, with the edit."""
    folder = root / folder_of(edit)
    shutil.copytree(PROJECTS / edit.project, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in edit.replaced:
        text = (folder / name).read_text() if (folder / name).exists() else ""
        assert old in text, f"{edit.name}: {old}"
        (folder / name).write_text(text.replace(old, new) if old else text + new)
    return folder


@pytest.fixture(scope="module")
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each edit whose test runs, and one for each project without an edit."""
    root = tmp_path_factory.mktemp("edits") / "root"
    chosen: list[Edit] = [
        getattr(item, "callspec").params["edit"]  # noqa: B009
        for item in request.session.items
        if item.path == Path(__file__)
    ]
    for project in {edit.project for edit in chosen}:
        make(Edit("as it was", project, ()), root)
    for edit in chosen:
        make(edit, root)
    return root


@pytest.fixture(scope="module")
def counted(newest: ReleaseEnvironment, root: Path) -> dict[str, factory.Counted]:
    done = newest.run(str(HERE / "count_edits.py"), str(root), timeout=1200)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=dict[str, factory.Counted])


def parameters(found: list[Edit], *each_time: str) -> list[Any]:
    """A few edits for each change of the suite, and every night all of them."""
    return [
        pytest.param(
            edit, id=edit.name, marks=() if edit.name in each_time else pytest.mark.nightly
        )
        for edit in found
    ]


def fault(counted: dict[str, factory.Counted], edit: Edit, path: Path) -> str:
    """What `contract check` says of the edit, with the contract of the project as it was."""

    def entry(name: str) -> Entry:
        found = counted[name]
        assert found.counts is not None, found.error
        return Entry.of("model.py:make", "default", "cpu", found.torch, found.counts)

    file.write(path, [entry(f"{edit.project} as it was")])
    assert file.read(path).entries
    return file.fault(path, entry(folder_of(edit)), "model.py:make", "update")


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "edit", parameters(edits.CAUGHT, "a print", "an attribute that counts up", "a dtype change")
)
def test_a_change_is_caught_with_its_line(
    edit: Edit, counted: dict[str, factory.Counted], root: Path, tmp_path: Path
) -> None:
    text = fault(counted, edit, tmp_path / file.NAME)
    lines = text.splitlines()
    assert edit.says in text
    assert len(lines) <= 20
    places = [re.match(r" +at (\w+\.py):(\d+).*?: (.+)", line) for line in lines]
    (found,) = [place for place in places if place and edit.line in place[3]][:1]
    source = (root / folder_of(edit) / found[1]).read_text().splitlines()
    assert edit.line in source[int(found[2]) - 1], text


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("edit", parameters(edits.HARMLESS, "a moved class", "a renamed argument"))
def test_a_harmless_edit_is_not(
    edit: Edit, counted: dict[str, factory.Counted], tmp_path: Path
) -> None:
    assert fault(counted, edit, tmp_path / file.NAME) == ""
