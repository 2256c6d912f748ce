import collections
import re

import pytest

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.releases import catalogue, locking
from torchcompile_suite.releases.catalogue import find

RELEASES = catalogue.read()

# The packages that may differ between locks, because PyTorch requires certain versions.
REQUIRED_BY_TORCH = {"torch", "torchvision", "triton", "sympy", "setuptools"}


def pins(version):
    found = collections.defaultdict(set)
    for line in find(version).lock.read_text().splitlines():
        if match := locking.PIN.fullmatch(line):
            found[match["name"]].add(match["version"])
    return found


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: r.version)
def test_lock_is_plain_pins_of_all_that_is_needed(release):
    text = release.lock.read_text()
    locking.check(release.version, text)
    assert not re.search(r"https?:|file:|--|/|@|\+|localhost|\.whl", text)
    assert pins(release.version)["timm"] == {"1.0.31"}
    assert pins(release.version)["asv-runner"] == {"0.3.2"}


def test_no_lock_without_a_release():
    assert {path.stem for path in catalogue.LOCKS.iterdir()} == {
        release.version for release in catalogue.everything()
    }


@pytest.mark.parametrize(
    ("version", "torchvision"),
    [("2.4.0", "0.19.0"), ("2.4.1", "0.19.1"), ("2.5.1", "0.20.1"), ("2.6.0", "0.21.0"),
     ("2.7.1", "0.22.1"), ("2.8.0", "0.23.0"), ("2.9.1", "0.24.1"), ("2.10.0", "0.25.0"),
     ("2.11.0", "0.26.0"), ("2.12.1", "0.27.1"), ("2.13.0", "0.28.0"), ("2.15.0", "0.29.2")],
)  # fmt: skip
def test_torchvision_pairs_with_torch(version, torchvision):
    assert pins(version)["torchvision"] == {torchvision}


def test_releases_differ_in_nothing_but_pytorch():
    ours = [release for release in RELEASES if "3.10" in release.usable_pythons]
    texts = [set(release.lock.read_text().splitlines()[1:]) for release in ours]
    differing = set[str]().union(*texts) - texts[0].intersection(*texts)
    names = {line.partition("==")[0] for line in differing}
    assert {n for n in names if not n.startswith(("nvidia-", "cuda-"))} == REQUIRED_BY_TORCH


def test_a_release_without_python_3_10_has_the_same_versions_for_the_others():
    older, newer = pins("2.14.1"), pins("2.15.0")
    shared = [n for n in newer if n in older and not n.startswith(("nvidia-", "cuda-"))]
    odd = {n for n in shared if not newer[n] <= older[n]}
    assert odd == {"torch", "triton"}


GOOD = find("2.9.1").lock.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "numpy>=2",
        "torch @ https://x/torch.whl",
        "torch==2.9.1+cpu",
        "--index-url https://x",
        "numpy",
    ],
)
def test_check_refuses_lines_that_are_not_plain_pins(line):
    with pytest.raises(SuiteError, match="not a plain pin"):
        locking.check("2.9.1", GOOD + line + "\n")


def test_check_refuses_another_torch_and_missing_packages():
    with pytest.raises(SuiteError, match=r"lacks torch==2\.9\.0"):
        locking.check("2.9.0", GOOD)
    with pytest.raises(SuiteError, match="lacks scipy"):
        locking.check("2.9.1", re.sub("(?m)^scipy.*\n", "", GOOD))


def test_a_published_lock_never_changes(tmp_path):
    release = find("2.9.1")
    assert locking.write(release, GOOD, tmp_path, published=True)
    assert not locking.write(release, GOOD, tmp_path, published=True)
    with pytest.raises(SuiteError, match="results refer to"):
        locking.write(release, GOOD + "x==1\n", tmp_path, published=True)
    assert (tmp_path / "2.9.1.txt").read_text() == GOOD
