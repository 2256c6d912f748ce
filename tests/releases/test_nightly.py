"""`releases add` against a small real index, over real HTTP, with the real uv."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from torchcompile_suite.analysis import summary
from torchcompile_suite.cli.releases import app
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue, index, install, ledger, locking
from torchcompile_suite.releases.catalogue import Release
from torchcompile_suite.releases.environments import Proof

from .test_index import filled, package_index  # noqa: F401 (fixtures)
from .test_ledger import build

SHA = "0123456789" * 4
FIRST, SECOND = "2.16.0.dev20261120", "2.16.0.dev20261121"


@pytest.fixture
def nightlies(filled, monkeypatch):  # noqa: F811
    """The index of `filled`, with two nightlies and their torchvision."""
    for version in (FIRST, SECOND):
        for python in ("cp311", "cp312"):
            filled.add("torch", f"{version}+cpu", f"{python}-{python}-manylinux_2_28_x86_64")
        day = version.rpartition("dev")[2]
        filled.add("torchvision", f"0.30.0.dev{day}+cpu", requires=[f"torch=={version}"])
    return filled


@pytest.fixture
def locks(tmp_path):
    folder = tmp_path / "locks"
    folder.mkdir()
    newest = catalogue.read()[-1]
    (folder / newest.lock.name).write_bytes(newest.lock.read_bytes())
    return folder


def proven(release: Release) -> Proof:
    """Not installed: the index has no real torch."""
    return Proof(release, True, "torch", 0.0, SHA)


def test_nightlies_are_added_oldest_first(nightlies, locks, tmp_path):
    file = tmp_path / "nightlies.toml"
    url = f"{nightlies.url}/simple"
    added = index.add_nightlies([f"v{SECOND}", FIRST, FIRST], url, file, locks, proven)
    assert [each.version for each in added] == [FIRST, SECOND]
    assert catalogue.nightlies(file) == added
    before = [release for release in catalogue.read() if release.date <= added[0].date]
    assert [each.after for each in added] == [before[-1].version, FIRST]
    assert {each.index_url for each in added} == {url}
    assert {each.git_version for each in added} == {SHA}
    assert f"{added[0].date:%Y-%m-%d %H:%M}" == "2026-11-20 00:00"
    assert added[0].pythons == ("3.11", "3.12")
    text = (locks / f"{FIRST}.txt").read_text()
    locking.check(FIRST, text)
    assert f"torch=={FIRST}+cpu\n" in text
    assert "torchvision==0.30.0.dev20261120+cpu\n" in text
    # Packages that PyTorch does not require have the versions of the releases.
    assert "9999" not in text
    with pytest.raises(SuiteError, match="added before"):
        index.add_nightlies([SECOND], url, file, locks, proven)
    with pytest.raises(SuiteError, match="oldest first"):
        index.add_nightlies(["2.16.0.dev20261119"], url, file, locks, proven)


def test_a_nightly_that_does_not_install_leaves_no_file(nightlies, locks, tmp_path):
    file = tmp_path / "nightlies.toml"

    def broken(release):
        return Proof(release, False, "no such symbol", 0.0)

    with pytest.raises(SuiteError, match="does not install: no such symbol"):
        index.add_nightlies([FIRST], f"{nightlies.url}/simple", file, locks, broken)
    assert not file.exists()
    assert not (locks / f"{FIRST}.txt").exists()


def test_what_was_added_before_an_error_is_said(nightlies, locks, tmp_path):
    file = tmp_path / "nightlies.toml"
    added: list[Release] = []

    def second_broken(release):
        return proven(release)._replace(ok=release.version == FIRST)

    with pytest.raises(SuiteError, match=f"{SECOND} does not install"):
        index.add_nightlies(
            [FIRST, SECOND], f"{nightlies.url}/simple", file, locks, second_broken, added.append
        )
    assert tuple(added) == catalogue.nightlies(file)
    assert [each.version for each in added] == [FIRST]


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.16.0", "is not a nightly"),
        ("main", "is not a nightly"),
        ("2.16.0.dev20261320", "names no day"),
        ("2.16.0.dev20261119", "no Linux x86-64 wheel"),
        ("2.4.0.dev20240101", "older than"),
    ],
)
def test_a_nightly_that_cannot_be_added_is_one_clear_line(
    nightlies, locks, tmp_path, version, words
):
    with pytest.raises(SuiteError, match=words) as caught:
        index.add_nightlies([version], None, tmp_path / "nightlies.toml", locks, proven)
    assert "\n" not in str(caught.value)


def test_no_password_gets_into_the_ledger(tmp_path, locks):
    with pytest.raises(SuiteError, match="name or password"):
        index.add_nightlies(
            [FIRST], "https://me:secret@example.invalid", tmp_path / "n", locks, proven
        )


def test_bad_input_is_one_line():
    result = CliRunner().invoke(app, ["add", "2.16.0"])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


@pytest.fixture
def with_nightlies(monkeypatch, tmp_path):
    """The catalogue with two nightlies, which have the lock of the newest release."""
    newest = catalogue.read()[-1]
    folder = tmp_path / "locks"
    folder.mkdir()
    for release in catalogue.read():
        (folder / release.lock.name).write_bytes(release.lock.read_bytes())
    added = []
    for version, after in ((FIRST, newest.version), (SECOND, FIRST)):
        (folder / f"{version}.txt").write_bytes(newest.lock.read_bytes())
        date = newest.date.replace(hour=0)
        url = "https://example.invalid/simple"
        added.append(Release(version, date, ("3.11",), SHA, after, url))
    monkeypatch.setattr(catalogue, "LOCKS", folder)
    return (*catalogue.read(), *added)


def test_the_ledger_grows_a_branch_and_no_release_moves(with_nightlies, tmp_path):
    plain, tags = ledger.compute(catalogue.read())
    built = build(tmp_path / "ledger", with_nightlies)
    assert list(built.commits)[: len(plain)] == list(plain)
    assert {tag: built.tags[tag] for tag in tags} == tags
    assert built.head == list(plain)[-1]

    def git(*arguments):
        command = ["git", "-C", str(built.path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    first, second = built.tags[f"v{FIRST}"], built.tags[f"v{SECOND}"]
    assert git("rev-list", "main..nightly") == [second, first]
    assert git("rev-list", "main") == list(plain)[::-1]
    git("fsck", "--strict")
    shown = json.loads(" ".join(git("show", f"v{FIRST}:release.json")))
    assert shown["index_url"] == "https://example.invalid/simple"


def test_a_nightly_without_what_it_follows_is_one_clear_line(with_nightlies, tmp_path):
    with pytest.raises(SuiteError, match=r"nightlies\.toml"):
        ledger.build(tmp_path / "ledger", (*catalogue.read(), with_nightlies[-1]))


def test_find_and_order(with_nightlies):
    assert catalogue.find(f"v{FIRST}", with_nightlies).version == FIRST
    assert catalogue.find("2.9", with_nightlies).version == "2.9.1"
    with pytest.raises(SuiteError, match=r"releases add 2\.16\.0\.dev20261101"):
        catalogue.find("2.16.0.dev20261101", with_nightlies)
    versions = ["2.16.0", SECOND, "2.15.0", FIRST, "2.9.1"]
    ordered = ["2.9.1", "2.15.0", FIRST, SECOND, "2.16.0"]
    assert sorted(versions, key=summary.version_key) == ordered
    known = {each.version: each for each in with_nightlies}
    assert known[FIRST].key < known[SECOND].key
    assert known[FIRST].minor == "2.16"
    assert catalogue.newest_patch("2.16", with_nightlies[-2:]) is None


def test_a_nightly_among_the_releases_is_refused(tmp_path):
    file = tmp_path / "releases.toml"
    entry = f"version = '{FIRST}'\ndate = 2026-11-20T00:00:00Z\npythons = ['3.11']\n"
    file.write_text(f"[[release]]\n{entry}")
    with pytest.raises(SuiteError, match="nothing else"):
        catalogue.read(file)
    file.write_text(f"[[nightly]]\n{entry}")
    with pytest.raises(SuiteError, match="after"):
        catalogue.nightlies(file)


def test_a_nightlys_index_reaches_the_installation(with_nightlies, tmp_path, monkeypatch):
    commands = []

    def uv(*command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(install, "uv", uv)
    install.sync(with_nightlies[-1], tmp_path / "python", 0)
    (index,) = [command[command.index("--index") + 1] for command in commands if "sync" in command]
    assert index == "https://example.invalid/simple"
