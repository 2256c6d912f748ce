"""Overlays: which files they have, which commits are refused, and how the base is restored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from evidence.wheels import Repository
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchcompile_suite.commits import journal
from torchcompile_suite.commits.clone import Clone, Difference
from torchcompile_suite.commits.overlay import base_of, changed_files, classify
from torchcompile_suite.engine.launches import Refused
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue
from torchcompile_suite.results import descriptions

BASE = catalogue.find("2.9.0")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "pytorch")
    made.write("torch/__init__.py", b"one = 1\n")
    made.write("torch/_inductor/gone.py", b"there = True\n")
    made.write("torch/csrc/Module.cpp", b"// bindings\n")
    made.commit("PyTorch 2.9.0")
    made.tag("v2.9.0")
    return made


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("torch/_inductor/codegen/wrapper.py", "python"),
        ("torchgen/model.py", "python"),
        ("torch/_inductor/kernel/templates/flex.py.jinja", "python"),
        ("torch/_export/serde/schema.yaml", "python"),
        ("torch/csrc/dynamo/guards.cpp", "native"),
        ("torch/csrc/utils/generate.py", "native"),
        ("aten/src/ATen/native/native_functions.yaml", "native"),
        ("torch/CMakeLists.txt", "native"),
        ("CMakeLists.txt", "native"),
        ("torch/_C/module.cpp", "native"),
        ("test/test_torch.py", ""),
        ("docs/source/index.rst", ""),
        ("README.md", ""),
    ],
)
def test_kinds_of_files(path: str, kind: str) -> None:
    assert classify(path) == kind


def test_a_header_that_the_wheel_ships_is_overlaid() -> None:
    assert classify("torch/_inductor/codegen/cpp_prefix.h") == "native"
    assert classify("torch/_inductor/codegen/cpp_prefix.h", shipped=True) == "python"


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("torch/csrc/dynamo/guards.cpp", True),
        ("torch/csrc/autograd/python_variable.cpp", True),
        ("aten/src/ATen/native/native_functions.yaml", True),
        ("tools/autograd/derivatives.yaml", True),
        ("torch/csrc/api/src/nn/module.cpp", False),
        ("aten/src/ATen/native/cuda/Softmax.cu", False),
        ("c10/core/Allocator.cpp", False),
    ],
)
def test_which_compiled_files_the_python_needs(path: str, needed: bool) -> None:
    files = changed_files([Difference(path, True)], lambda _: False)
    assert files.native == [path]
    assert bool(files.needed) is needed


def test_the_base_is_the_newest_ancestor(repository: Repository) -> None:
    clone = Clone(repository.folder)
    older = clone.resolve("HEAD")
    repository.write("torch/__init__.py", b"one = 2\n")
    newer = repository.commit("PyTorch 2.9.1")
    repository.tag("v2.9.1")
    repository.write("torch/__init__.py", b"one = 3\n")
    last = repository.commit("later")
    assert base_of(clone, older)[0].version == "2.9.0"
    assert base_of(clone, newer) == (catalogue.find("2.9.1"), newer)
    assert base_of(clone, last) == (catalogue.find("2.9.1"), newer)


def test_a_commit_without_a_release_before_it_is_refused(repository: Repository) -> None:
    clone = Clone(repository.folder)
    with pytest.raises(Refused, match="releases add"):
        base_of(clone, clone.resolve("HEAD"), [catalogue.find("2.15.0")])


def test_a_nightly_is_the_commit_that_its_subject_names(repository: Repository) -> None:
    """torch.version.git_version of a nightly is a commit of the nightly branch."""
    main = repository.commit("on main")
    nightly = repository.commit(f"2026-11-20 nightly release ({main})")
    repository.git("reset", "--quiet", "--hard", main)
    later = repository.commit("later on main")
    base = msgspec.structs.replace(BASE, version="2.16.0.dev20261120", git_version=nightly)
    assert base_of(Clone(repository.folder), later, [base]) == (base, main)


def test_differences_and_contents(repository: Repository) -> None:
    clone = Clone(repository.folder)
    first = clone.resolve("v2.9.0")
    repository.write("torch/new file \u00e4.py", b"x = '\\n'\n\n")
    repository.git("rm", "--quiet", "torch/_inductor/gone.py")
    (repository.folder / "torch/link.py").symlink_to("__init__.py")
    second = repository.commit("all kinds")
    assert clone.differences(first, second) == [
        Difference("torch/_inductor/gone.py", False),
        Difference("torch/link.py", False),
        Difference("torch/new file \u00e4.py", True),
    ]
    paths = ["torch/new file \u00e4.py", "torch/__init__.py"]
    assert dict(clone.contents(second, paths)) == {
        paths[0]: b"x = '\\n'\n\n",
        paths[1]: b"one = 1\n",
    }
    assert clone.between(first, second) == [second]


def test_wrong_names_are_one_clear_line(repository: Repository, tmp_path: Path) -> None:
    clone = Clone(repository.folder)
    for name in ("nothing", "", "--all", "v2.9.0^{tree}"):
        with pytest.raises(SuiteError, match="has no commit"):
            clone.resolve(name)
    with pytest.raises(SuiteError, match="no clone of PyTorch"):
        Clone(tmp_path / "none")
    with pytest.raises(SuiteError, match="does not come after"):
        clone.between(clone.resolve("HEAD"), clone.resolve("HEAD"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteError, match="not a git repository"):
        Clone(tmp_path / "empty")


FILES = {"torch/a.py": b"a", "torch/sub/b.py": b"b", "torch/data.json": b"{}"}


def environment(folder: Path) -> Path:
    """An installed base, as an overlay finds it."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    for path, content in FILES.items():
        file = packages / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (folder / journal.JOURNAL).write_bytes(msgspec.json.encode({"base": BASE.version, "paths": {}}))
    return packages


def state(packages: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its inode."""
    return {
        file.relative_to(packages).as_posix(): (file.stat().st_ino, file.read_bytes())
        for file in packages.rglob("*")
        if file.is_file()
    }


def apply(folder: Path, contents: dict[str, bytes | None]) -> None:
    present = ((path, content) for path, content in contents.items() if content is not None)
    journal.apply(folder, BASE.version, present, contents)


names = st.sampled_from([*FILES, "torch/new.py", "torch/fresh/__init__.py", "torch/fresh/x/y.py"])
commits = st.dictionaries(names, st.none() | st.binary(max_size=4), max_size=6)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
)
@given(st.lists(commits, min_size=1, max_size=3))
def test_the_base_is_restored_exactly(
    tmp_path_factory: pytest.TempPathFactory, several: list[dict[str, bytes | None]]
) -> None:
    folder = tmp_path_factory.mktemp("environment")
    packages = environment(folder)
    before = state(packages)
    for contents in several:
        apply(folder, contents)
        now = {path: content for path, (_, content) in state(packages).items()}
        wanted = {**FILES, **contents}
        assert now == {path: content for path, content in wanted.items() if content is not None}
        assert descriptions.overlay(folder) is not None
        journal.restore(folder)
        assert state(packages) == before
        assert descriptions.overlay(folder) is None


@pytest.mark.parametrize("after", range(1, 40, 3))
def test_killed_at_any_moment(tmp_path: Path, after: int) -> None:
    """Killed at the n-th change of the file system: then it is refused, and restored exactly."""
    packages = environment(tmp_path)
    before = state(packages)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from torchcompile_suite.commits import journal\n"
        "left = int(sys.argv[2])\n"
        "def hook(event, _):\n"
        "    global left\n"
        "    if event in ('os.rename', 'os.link', 'os.remove', 'os.mkdir', 'os.rmdir'):\n"
        "        left -= 1\n"
        "        if not left: os._exit(9)\n"
        "folder = Path(sys.argv[1])\n"
        "new = {'torch/a.py': b'2', 'torch/fresh/n.py': b'3', 'torch/sub/b.py': b'4'}\n"
        "sys.addaudithook(hook)\n"
        "journal.apply(folder, '2.9.0', new.items(), [*new, 'torch/data.json'])\n"
        "journal.restore(folder)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(after)]
    killed = subprocess.run(command, check=False).returncode
    assert killed in (0, 9)
    if state(packages) != before:
        marker = descriptions.overlay(tmp_path)
        assert marker is not None
        assert "interrupted" in marker.refused
    journal.restore(tmp_path)
    assert state(packages) == before
    assert not (tmp_path / journal.SAVED).exists()


def test_bytecode_of_another_commit_is_not_run(tmp_path: Path) -> None:
    """Sources of the same size and second: Python would use the old bytecode for the new one."""
    packages = environment(tmp_path)
    cached = packages / "torch" / "__pycache__" / "a.cpython-311.pyc"
    cached.parent.mkdir()
    cached.write_bytes(b"old")
    apply(tmp_path, {"torch/a.py": b"z"})
    assert not cached.exists()


def test_a_marker_that_cannot_be_read_counts_as_refused(tmp_path: Path) -> None:
    assert descriptions.overlay(tmp_path) is None
    (tmp_path / descriptions.OVERLAY_FILE).write_text("{")
    found = descriptions.overlay(tmp_path)
    assert found is not None
    assert "cannot be read" in found.refused
