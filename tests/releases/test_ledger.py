"""The ledger, checked with the real git, which ASV uses."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.releases.catalogue import Release

# Published: results refer to these commits. A change here breaks all results. New releases append
# lines; no line may ever change.
FROZEN = """
aae549065ded02672f9230149cd17f21a92046a9 2.4.0
ca6967a091b40b83bea3451a938ec70bd9bf5442 2.4.1
f1a032b04b0b887a2580b19b10cf8029511de367 2.5.0
585a3528a2e5bd3c5ea0b308ed1a8d223cb0af3a 2.5.1
1adb385196df2eda3c13228a598cf506a8a4fc02 2.6.0
7cf93b97d5035ca3328d2fbd3d5c0c4a82e5d7ca 2.7.0
c6d82f6e5f5a891bf8174643b283db858ccf58b2 2.7.1
7fce4f0b60a39fe862f382d216794154fe43646e 2.8.0
e8909ec268771990ad7f7de4cbb2f059a11f6344 2.9.0
9edd37137c5194250fde3c696ea3d1a169162baf 2.9.1
2cd04a80a6b2fc85199cf0137a451b93c7008a97 2.10.0
75ee992d820167e41f28b63274e3119d8215a803 2.11.0
a5ae5eee5d58ea0b93b6414f53ceedd144c45617 2.12.0
5d97ddc706d5d300c9f83f503c01e92a84477a08 2.12.1
b5c6fb2e82fdccd126530e42709b16716fb1d70e 2.13.0
a6aca38b89e5f634296c3a0c74295007d5c3b4e9 2.14.0
2983298eba533af728a779601189eabd96641670 2.14.1
7936dea3b7f6d913c61e45c0986e4e46092cb71e 2.15.0
"""
FROZEN_COMMITS = dict(line.split() for line in FROZEN.split("\n") if line)

COUNT = """
import sys
counted = {"open": 0, "subprocess.Popen": 0}
def hook(event, arguments):
    if event in counted and (event != "open" or str(arguments[0]).startswith(sys.argv[1])):
        counted[event] += 1
sys.addaudithook(hook)
"""
COUNTED = "; print(counted['open'], counted['subprocess.Popen'])"
BUILD = "import sys, pathlib; from torchcompile_suite.releases import ledger; "
BUILD += "ledger.build(pathlib.Path(sys.argv[1])); print(list(ledger.compute()[0])[-1])"


class Built(NamedTuple):
    """A ledger, and what is in it: commit SHA to release, tag to commit SHA."""

    path: Path
    commits: Mapping[str, Release]
    tags: Mapping[str, str]

    @property
    def head(self):
        """The commit of the newest release."""
        return [sha for sha, release in self.commits.items() if not release.nightly][-1]


def build(path, releases=None):
    ledger.build(path, releases)
    return Built(path, *ledger.compute(releases))


def git(path, *arguments):
    command = ["git", "-C", str(path), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def build_in_a_process(path, **environment):
    src = str(Path(ledger.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(path)],
        env={**os.environ, "PYTHONPATH": src, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def snapshot(path):
    return {
        p.relative_to(path): (p.stat().st_mtime_ns, p.stat().st_ino, p.is_file() and p.read_bytes())
        for p in path.rglob("*")
    }


@pytest.fixture
def built(tmp_path):
    return build(tmp_path / "ledger")


def test_published_commits_never_change(built):
    commits = {sha: release.version for sha, release in built.commits.items()}
    assert dict(list(commits.items())[: len(FROZEN_COMMITS)]) == FROZEN_COMMITS
    history = git(built.path, "log", "--reverse", "--format=%H %s", "main").splitlines()
    assert history == [f"{sha} PyTorch {version}" for sha, version in commits.items()]


@pytest.mark.parametrize(
    "environment",
    [
        {"TZ": "Asia/Kathmandu"},
        {"GIT_AUTHOR_NAME": "me", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00", "GIT_DIR": "/none"},
        {"GIT_OBJECT_DIRECTORY": "/none", "GIT_INDEX_FILE": "/none"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {"HOME": "bad"},
    ],
    ids=lambda e: next(iter(e)),
)
def test_same_commits_everywhere(tmp_path, environment):
    if "HOME" in environment:
        (tmp_path / ".gitconfig").write_text(
            "[core]\n\tautocrlf = true\n\tsharedRepository = all\n[init]\n\tdefaultBranch = x\n"
            "[i18n]\n\tcommitEncoding = latin1\n[commit]\n\tgpgSign = true\n"
        )
        environment = {"HOME": str(tmp_path)}
    builder = build_in_a_process(tmp_path / "ledger", **environment)
    assert builder.communicate()[0].strip() == build(tmp_path / "other").head
    assert git(tmp_path / "ledger", "rev-parse", "HEAD^{commit}") in ledger.compute()[0]


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_umask_is_obeyed_and_changes_no_commit(tmp_path, umask):
    before = os.umask(umask)
    try:
        built = build(tmp_path / "ledger")
    finally:
        os.umask(before)
    assert built.head == list(ledger.compute()[0])[-1]
    assert built.path.stat().st_mode & 0o777 == 0o777 & ~umask


def test_git_accepts_it_and_its_dates(built):
    git(built.path, "fsck", "--full", "--strict")
    assert git(built.path, "symbolic-ref", "HEAD") == "refs/heads/main"
    shown = git(built.path, "show", "-s", "--format=%aI %cI %an", "v2.4.0")
    assert shown == "2024-07-24T15:29:21+00:00 2024-07-24T15:29:21+00:00 torchcompile-suite"
    assert git(built.path, "show", "v2.4:requirements.txt").count("torch==2.4.1\n") == 1


def test_the_git_commands_of_asv(built, tmp_path):
    assert git(built.path, "rev-parse", "v2.4^{commit}") == built.tags["v2.4.1"]
    between = git(built.path, "rev-list", "--first-parent", "v2.4..v2.9", "--").split()
    assert [built.commits[sha].version for sha in reversed(between)] == [
        "2.5.0", "2.5.1", "2.6.0", "2.7.0", "2.7.1", "2.8.0", "2.9.0", "2.9.1",
    ]  # fmt: skip
    assert git(built.path, "rev-list", "v2.9^!", "--").split() == [built.tags["v2.9"]]
    dates = git(built.path, "log", "--format=%ct", "main").split()
    assert dates == sorted(dates, reverse=True)
    git(tmp_path, "clone", "--shared", "--recursive", str(built.path), "clone")
    git(tmp_path / "clone", "checkout", "-f", built.tags["v2.5.0"])
    git(tmp_path / "clone", "clean", "-fdx")
    held = sorted(p.name for p in (tmp_path / "clone").iterdir() if p.name != ".git")
    assert held == ["release.json", "requirements.txt"]


def test_tags(built):
    tags = dict(line.split()[::-1] for line in git(built.path, "show-ref", "--tags").splitlines())
    assert {tag.removeprefix("refs/tags/"): sha for tag, sha in tags.items()} == dict(built.tags)
    releases = catalogue.read()
    newest = releases[-1]
    heads = {tag for tag, sha in built.tags.items() if sha == built.head}
    assert heads == {f"v{newest.version}", f"v{newest.minor}"}
    assert len(tags) == len(releases) + len({release.minor for release in releases})


def test_refresh_writes_nothing_and_does_little(built):
    """It takes milliseconds. Counted, because a time would depend on the machine."""
    before = snapshot(built.path)
    assert build(built.path) == built
    assert snapshot(built.path) == before
    src = str(Path(ledger.__file__).parents[2])
    command = [sys.executable, "-c", COUNT + BUILD + COUNTED, str(built.path)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": src},
        check=True,
        capture_output=True,
        text=True,
    )
    opened, started = map(int, done.stdout.split()[-2:])
    assert 0 < opened < 20 * len(built.commits)
    assert started == 0


def test_refresh_after_gc_writes_nothing(built):
    git(built.path, "gc", "--quiet", "--prune=now")
    before = snapshot(built.path)
    assert build(built.path) == built
    assert snapshot(built.path) == before


def test_an_older_ledger_grows_and_other_branches_survive(tmp_path):
    releases = catalogue.read()
    path = tmp_path / "ledger"
    build(path, releases[: releases.index(catalogue.find("v2.14.1"))])
    assert git(path, "rev-parse", "v2.14") == git(path, "rev-parse", "v2.14.0")
    old = git(path, "rev-parse", "v2.9.0")
    git(path, "branch", "nightly", old)
    git(path, "tag", "nightly-20261101", old)
    git(path, "config", "remote.origin.url", "somewhere")
    built = build(path)
    assert git(path, "rev-parse", "main") == built.head
    assert git(path, "rev-parse", "nightly", "nightly-20261101").split() == [old, old]
    assert git(path, "config", "remote.origin.url") == "somewhere"
    newest = catalogue.find("v2.14").tag
    assert git(path, "rev-parse", "v2.14^{commit}") == built.tags[newest]


def _break(path, part):
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink()


@pytest.mark.parametrize(
    "part",
    ["HEAD", "config", "objects", "refs", "refs/tags/v2.4", "refs/heads/main", "description"],
)
@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_damage_is_repaired(built, part, how):
    target = built.path / part
    git(built.path, "branch", "nightly", "v2.9.0")
    if how == "removed" or target.is_dir():
        _break(built.path, target)
    else:
        target.write_bytes(b"")
    assert build(built.path) == built
    git(built.path, "fsck", "--full", "--strict")
    assert git(built.path, "rev-parse", "HEAD") == built.head
    if part != "refs":
        assert git(built.path, "rev-parse", "nightly") == built.tags["v2.9.0"]


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_any_damaged_object_is_repaired(tmp_path, data):
    built = build(tmp_path / "ledger")
    objects = sorted(p for p in built.path.glob("objects/??/*"))
    for victim in data.draw(st.lists(st.sampled_from(objects), max_size=4, unique=True)):
        content = victim.read_bytes()
        victim.chmod(0o644)
        victim.write_bytes(data.draw(st.sampled_from([b"", content[:20], b"x" + content, b"junk"])))
    assert build(built.path) == built
    git(built.path, "fsck", "--full", "--strict")


@pytest.mark.parametrize("kind", ["repository", "folder", "file"])
def test_a_path_that_is_not_a_ledger_does_not_change(tmp_path, kind):
    path = tmp_path / "ledger"
    if kind == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "mine").write_text("mine")
    if kind == "repository":
        git(path, "init", "--bare", "-q")
    before = snapshot(tmp_path)
    with pytest.raises(SuiteError, match="not a release ledger") as caught:
        build(path)
    assert "\n" not in str(caught.value)
    assert snapshot(tmp_path) == before


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "ledger").mkdir()
    build(tmp_path / "ledger")
    assert [p.name for p in tmp_path.iterdir()] == ["ledger"]


def test_many_at_once(tmp_path):
    builders = [build_in_a_process(tmp_path / "a" / "ledger") for _ in range(6)]
    printed = [builder.communicate() for builder in builders]
    assert {out.strip() for out, _ in printed} == {list(ledger.compute()[0])[-1]}, printed
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["ledger"]
    git(tmp_path / "a" / "ledger", "fsck", "--full", "--strict")


@pytest.mark.parametrize("started", ["nothing", "older"])
def test_killed_at_any_moment(tmp_path, started):
    path = tmp_path / "ledger"
    slow = (
        "import os, time; plain = os.fsync\n"
        "os.fsync = lambda handle: (print('.', flush=True), time.sleep(0.02), plain(handle))\n"
    )
    for files in (1, 20, 60):
        shutil.rmtree(path, ignore_errors=True)
        if started == "older":
            build(path, catalogue.read()[:1])
        src = str(Path(ledger.__file__).parents[2])
        builder = subprocess.Popen(
            [sys.executable, "-c", slow + BUILD, str(path)],
            env={**os.environ, "PYTHONPATH": src},
            stdout=subprocess.PIPE,
        )
        assert builder.stdout is not None
        for _ in range(files):
            builder.stdout.readline()
        builder.send_signal(signal.SIGKILL)
        builder.communicate()
        if path.exists():
            git(path, "fsck", "--full")
        built = build(path)
        git(path, "fsck", "--full", "--strict")
        assert git(path, "rev-parse", "main") == built.head


def test_leftovers_of_killed_runs_are_removed_once_they_are_old(built):
    left = [built.path.parent / "ledger.new-abc", built.path / "tmp_0123"]
    left[0].mkdir()
    left[1].write_text("")
    build(built.path)
    assert all(path.exists() for path in left)  # their owners may still be running
    for path in left:
        os.utime(path, (0, 0))
    build(built.path)
    assert not any(path.exists() for path in left)


def test_a_full_disk_is_one_clear_line(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))\n"
    src = str(Path(ledger.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", limit + BUILD, str(tmp_path / "ledger")],
        env={**os.environ, "PYTHONPATH": src, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert "SuiteError: cannot write the release ledger" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_lock_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "LOCKS", tmp_path)
    with pytest.raises(SuiteError, match=r"run `torchcompile-suite releases lock 2\.4\.0`"):
        build(tmp_path / "ledger")


@pytest.mark.parametrize("kept", ["all but the checksum", "half", "none"])
def test_a_truncated_object_is_repaired(built, kept):
    victim = sorted(built.path.glob("objects/??/*"))[0]
    content = victim.read_bytes()
    victim.chmod(0o644)
    victim.write_bytes({"all but the checksum": content[:-4], "half": content[:40]}.get(kept, b""))
    assert build(built.path) == built
    git(built.path, "fsck", "--full", "--strict")


@pytest.mark.parametrize("content", [b"", b"junk\n", b"\xff\xff\n"])
def test_a_damaged_packed_refs_file_is_repaired(built, content):
    git(built.path, "pack-refs", "--all")
    (built.path / "packed-refs").write_bytes(content)
    assert build(built.path) == built
    (built.path / "packed-refs").unlink()
    assert git(built.path, "rev-parse", "main") == built.head
