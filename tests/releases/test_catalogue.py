from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue
from torchcompile_suite.releases.catalogue import Release, UnknownRelease, find


def test_every_release_is_complete():
    releases = catalogue.read()
    assert [releases[0].version, releases[17].version] == ["2.4.0", "2.15.0"]
    assert all(r.lock.is_file() for r in releases)
    assert [r.date for r in releases] == sorted(r.date for r in releases)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("v2.4", "2.4.1"),
        ("2.4", "2.4.1"),
        ("2.4.0", "2.4.0"),
        ("v2.14.0", "2.14.0"),
        (" 2.6 ", "2.6.0"),
    ],
)
def test_find(name, version):
    assert find(name).version == version


@pytest.mark.parametrize(
    "name", ["2.99", "2.4.7", "2", "main", "", "2.4.1+cpu", "٢.٤", "v2.4^!", "2.4rc1", "2.4.0.1"]
)
def test_find_says_in_one_line_what_is_wrong(name):
    with pytest.raises(UnknownRelease) as caught:
        find(name)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_find_never_breaks(name):
    try:
        assert find(name) in catalogue.read()
    except UnknownRelease:
        pass


def test_two_digit_minors_sort_as_numbers():
    assert max(catalogue.read(), key=lambda r: r.key).version != "2.9.1"
    assert catalogue.newest_patch("2.14", [find("2.14.1"), find("2.14.0")]) == find("2.14.1")
    assert catalogue.newest_patch("3.0") is None


def test_pythons_are_those_the_suite_runs_on():
    assert find("2.4").usable_pythons == ("3.10", "3.11", "3.12")
    assert not find("2.4").supports("3.9")
    assert all(release.supports("3.11") for release in catalogue.read())
    assert not find("2.15").supports("3.10")


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "[[release]]\nversion = '2.4'\ndate = 2024-01-01T00:00:00Z\npythons = ['3.11']\n",
        "[[release]]\nversion = '2.4.0'\ndate = 2024-01-01T00:00:00\npythons = ['3.11']\n",
        "[[release]]\nversion = '2.4.0'\ndate = 2024-01-01T00:00:00Z\npythons = []\n",
        "[[release]]\nversion = '2.4.0'\ndate = 2024-01-01T00:00:00Z\npythons = ['3.9']\n",
        2 * "[[release]]\nversion = '2.4.0'\ndate = 2024-01-01T00:00:00Z\npythons = ['3.11']\n",
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, text):
    file = tmp_path / "releases.toml"
    file.write_text(text)
    with pytest.raises(SuiteError) as caught:
        catalogue.read(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_clear_line(tmp_path: Path):
    with pytest.raises(SuiteError, match="cannot read"):
        catalogue.read(tmp_path / "none.toml")


def test_final_versions():
    final = [
        v
        for v in ("2.4.0", "2.4.0rc1", "2.4.0+cpu", "2.5.0.dev1", "2.4.0.post1", "x")
        if catalogue.is_final(v)
    ]
    assert final == ["2.4.0"]


def test_release_names():
    release = Release("2.10.0", catalogue.read()[0].date, ("3.10",))
    assert (release.tag, release.minor) == ("v2.10.0", "2.10")
    assert release.key > find("2.9.1").key
