"""`releases update` against a small real index, over real HTTP, with the real uv."""

import base64
import datetime
import functools
import hashlib
import http.server
import json
import shutil
import threading
import zipfile

import pytest
from click.testing import CliRunner

from torchcompile_suite.cli.releases import app
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue, index, locking
from torchcompile_suite.releases.environments import Proof

KNOWN = [catalogue.find(name) for name in ("v2.14.1", "v2.15.0")]
UPLOADED = "2026-11-02T10:00:00.123456Z"
COMMIT = "5" * 40


def proven(release):
    """What an installation says; the wheels of this index hold nothing."""
    return Proof(release, True, "torch", 1.0, COMMIT)


class Index:
    """A package index in a folder."""

    def __init__(self, root, url):
        self.root, self.url, self.files = root, url, {}

    def add(
        self,
        name,
        version,
        tag="py3-none-any",
        *,
        requires=(),
        python="",
        uploaded=UPLOADED,
        yanked=False,
    ):
        dist = name.replace("-", "_")
        info = f"{dist}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += "".join(f"Requires-Dist: {r}\n" for r in requires)
        metadata += f"Requires-Python: {python}\n" * bool(python)
        wheel = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
        members = {f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel}
        file = self.root / f"{dist}-{version}-{tag}.whl"
        with zipfile.ZipFile(file, "w") as archive:
            record = ""
            for member, text in members.items():
                digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(
                    b"="
                )
                record += f"{member},sha256={digest.decode()},{len(text)}\n"
                archive.writestr(member, text)
            archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
        entry = {
            "filename": file.name,
            "url": f"{self.url}/{file.name.replace('+', '%2B')}",
            "hashes": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()},
            "yanked": yanked,
        }
        if uploaded:
            entry["upload-time"] = uploaded
        if python:
            entry["requires-python"] = python
        self.files.setdefault(name, []).append(entry)
        page = {"meta": {"api-version": "1.1"}, "name": name, "files": self.files[name]}
        folder = self.root / "simple" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").write_text(json.dumps(page))


class _Handler(http.server.SimpleHTTPRequestHandler):
    def guess_type(self, path):
        if str(path).endswith((".html", "/")):
            return "application/vnd.pypi.simple.v1+json"
        return super().guess_type(path)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def package_index(tmp_path, monkeypatch):
    root = tmp_path / "index"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Handler, directory=str(root))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    for variable in ("UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_EXCLUDE_NEWER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"local={url}/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    yield Index(root, url)
    server.shutdown()
    server.server_close()


@pytest.fixture
def filled(package_index):
    """An index with one new release, and with files that are not new releases."""
    for release in KNOWN:
        package_index.add("torch", release.version, "cp311-cp311-manylinux_2_28_x86_64")
    for python in ("cp311", "cp312", "cp39"):
        package_index.add("torch", "2.16.0", f"{python}-{python}-manylinux_2_28_x86_64")
    earliest = "2026-11-02T09:30:00Z"
    package_index.add("torch", "2.16.0", "cp313-cp313-win_amd64", uploaded=earliest)
    package_index.add("torch", "2.16.0", "cp314-cp314t-manylinux_2_28_x86_64")
    package_index.add("torch", "2.16.0", "cp314-cp314-manylinux_2_28_aarch64")
    package_index.add("torch", "2.16.0+cpu", "cp311-cp311-manylinux_2_28_x86_64")
    package_index.add("torch", "2.17.0rc1", "cp311-cp311-manylinux_2_28_x86_64")
    package_index.add("torch", "2.16.1", "cp311-cp311-manylinux_2_28_x86_64", yanked="broken")
    package_index.add("torch", "2.3.1", "cp311-cp311-manylinux1_x86_64")
    package_index.add("torchvision", "0.29.2", requires=["torch==2.15.0"])
    package_index.add("torchvision", "0.30.0", requires=["torch==2.16.0", "numpy"])
    package_index.add("timm", "1.0.31", requires=["torch", "torchvision"])
    for line in KNOWN[-1].lock.read_text().splitlines():
        pin = locking.PIN.fullmatch(line)
        if pin and pin["name"] in {
            "numpy",
            "scipy",
            "msgspec",
            "psutil",
            "setuptools",
            "asv-runner",
            "uv",
            "pip",
        }:
            package_index.add(pin["name"], pin["version"])
            package_index.add(
                pin["name"], "9999.0"
            )  # newer, but environments must not differ in it
    return package_index


@pytest.fixture
def suite(tmp_path):
    """A temporary catalogue with its locks, which has the known releases only."""
    file, locks = tmp_path / "releases.toml", tmp_path / "locks"
    entries = catalogue.CATALOGUE.read_text().split("[[release]]\n")
    versions = tuple(f'version = "{release.version}"\n' for release in KNOWN)
    known = [entry for entry in entries if entry.startswith(versions)]
    file.write_text("[[release]]\n".join(["# A comment that stays.\n\n", *known]))
    locks.mkdir()
    for release in KNOWN:
        shutil.copy(release.lock, locks)
    return file, locks


def test_update_appends_the_new_release_with_its_lock(filled, suite, tmp_path):
    file, locks = suite
    before = file.read_text()
    (new,) = index.update(file, locks, proven)
    assert new.version == "2.16.0"
    assert new.pythons == ("3.9", "3.11", "3.12")
    assert new.date == datetime.datetime(2026, 11, 2, 9, 30, tzinfo=datetime.timezone.utc)
    assert file.read_text().startswith(before)
    assert catalogue.read(file) == (*KNOWN, new)
    text = (locks / "2.16.0.txt").read_text()
    locking.check("2.16.0", text)
    assert "torchvision==0.30.0\n" in text
    assert "9999" not in text
    assert "127.0.0.1" not in text
    assert (locks / "2.15.0.txt").read_text() == KNOWN[-1].lock.read_text()
    assert new.git_version == COMMIT
    assert index.update(file, locks, proven) == ()
    assert sorted(p.name for p in locks.iterdir()) == ["2.14.1.txt", "2.15.0.txt", "2.16.0.txt"]


def test_a_late_patch_of_an_older_minor_release_is_added(filled, suite, tmp_path, monkeypatch):
    """Its torchvision is older than that of the newest release."""
    file, locks = suite
    index.update(file, locks, proven)
    filled.add("torch", "2.14.2", "cp311-cp311-manylinux_2_28_x86_64")
    filled.add("torchvision", "0.29.3", requires=["torch==2.14.2"])
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "an hour later"))
    (late,) = index.update(file, locks, proven)
    assert late.version == "2.14.2"
    assert "torchvision==0.29.3\n" in (locks / "2.14.2.txt").read_text()
    with pytest.raises(SuiteError, match=r"known: 2\.14\.1 to 2\.16\.0"):
        catalogue.find("2.9", catalogue.read(file))


def test_a_late_patch_starts_from_the_lock_of_the_release_before_it(filled, suite):
    """The pins of the newest lock have no wheels for the Python of an older minor release."""
    file, locks = suite
    for name in ("numpy", "scipy"):
        filled.files[name].clear()
        for line in KNOWN[0].lock.read_text().splitlines():
            pin = locking.PIN.fullmatch(line)
            if pin and pin["name"] == name:
                older = "< '3.11'" in line
                filled.add(name, pin["version"], python=">=3.10" if older else ">=3.11")
    filled.add("torch", "2.14.2", "cp310-cp310-manylinux_2_28_x86_64")
    filled.add("torchvision", "0.29.3", requires=["torch==2.14.2"])
    assert {each.version for each in index.update(file, locks, proven)} == {"2.14.2", "2.16.0"}
    before, late = ((locks / f"{one}.txt").read_text() for one in ("2.14.1", "2.14.2"))
    numpy = [line for line in before.splitlines() if line.startswith("numpy==")]
    assert [line for line in late.splitlines() if line.startswith("numpy==")] == numpy


def test_update_without_its_torchvision_changes_nothing(filled, suite):
    file, locks = suite
    (filled.root / "simple" / "torchvision" / "index.html").unlink()
    filled.files.pop("torchvision")
    filled.add("torchvision", "0.11.0", requires=["torch"])
    before = file.read_text()
    with pytest.raises(SuiteError, match=r"torchvision 0\.11\.0, older"):
        index.update(file, locks, proven)
    assert file.read_text() == before
    assert not (locks / "2.16.0.txt").exists()


def test_a_release_that_does_not_install_is_not_published(filled, suite):
    """Its lock would be part of a commit that never changes."""
    file, locks = suite
    before = file.read_text()
    with pytest.raises(SuiteError, match=r"2\.16\.0 does not install: no"):
        index.update(file, locks, lambda release: Proof(release, False, "no timm", 1.0))
    assert file.read_text() == before
    assert not (locks / "2.16.0.txt").exists()


def test_update_prints_what_it_added_before_an_error(monkeypatch):
    """It stays in the catalogue."""
    new = [catalogue.Release(one, KNOWN[0].date, ("3.11",)) for one in ("2.16.0", "2.17.0")]

    def publish(make, kind, file, locks, prove, added):
        if make().version == "2.17.0":
            raise SuiteError("2.17.0 does not install")
        added(make())

    monkeypatch.setattr(index, "find_new", lambda *_: new)
    monkeypatch.setattr(index, "_publish", publish)
    result = CliRunner().invoke(app, ["update"])
    assert result.exit_code == 1
    assert result.stdout == f"added v2.16.0, released {KNOWN[0].date:%Y-%m-%d}\n"
    assert result.stderr.count("\n") == 1


def test_an_index_without_upload_times_is_one_clear_line(package_index):
    package_index.add("torch", "2.16.0", "cp311-cp311-manylinux_2_28_x86_64", uploaded=None)
    with pytest.raises(SuiteError, match=r"does not say when PyTorch 2\.16\.0") as caught:
        index.find_new(set(), index.index_url())
    assert "\n" not in str(caught.value)


def test_a_release_that_is_not_complete_waits_and_the_others_do_not(package_index):
    today = datetime.datetime.now(datetime.timezone.utc).isoformat()
    package_index.add("torch", "2.16.0", "cp311-cp311-win_amd64")
    package_index.add("torch", "2.16.1", "cp311-cp311-manylinux_2_28_x86_64")
    package_index.add("torch", "2.17.0", "cp311-cp311-manylinux_2_28_x86_64", uploaded=today)
    said: list[str] = []
    (new,) = index.find_new(set(), index.index_url(), said.append)
    assert new.version == "2.16.1"
    assert "2.16.0 is left out: it has no Linux x86-64 wheel" in said[0]
    assert "2.17.0 has to wait" in said[1]


def test_an_index_without_torch(package_index):
    with pytest.raises(SuiteError, match="cannot read the releases of torch") as caught:
        index.find_new(set(), index.index_url())
    assert "\n" not in str(caught.value)


def test_a_missing_network_is_one_line_without_a_password(monkeypatch):
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://me:secret@127.0.0.1:9/simple")
    result = CliRunner().invoke(app, ["update"])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "secret" not in result.stderr
    assert "http://127.0.0.1:9/simple" in result.stderr


def test_index_url_order(monkeypatch):
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert index.index_url().startswith("http")
    monkeypatch.setenv("PIP_INDEX_URL", "http://c/simple")
    assert index.index_url() == "http://c/simple"
    monkeypatch.setenv("UV_INDEX_URL", "http://b/simple?x=1")
    assert index.index_url() == "http://b/simple?x=1"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "a=http://a/simple")
    assert index.index_url() == "http://a/simple"
