"""A series comes from one machine: the anchor decides."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from packaging.version import Version

from torchcompile_suite import matrix
from torchcompile_suite.cell import METHOD, Measurement
from torchcompile_suite.cli import history
from torchcompile_suite.releases import catalogue, ledger
from torchcompile_suite.results import records

from . import examples


def anchor(eager_s: float) -> Measurement:
    launches = [
        msgspec.structs.replace(
            examples.launch("warm", eager=eager_s * by, mode=eager_s * by), method=METHOD
        )
        for by in (0.99, 1.0, 1.01)
    ]
    measurement = examples.measurement(history.ANCHOR.workload, mode=history.ANCHOR.mode)
    return msgspec.structs.replace(measurement, launches=launches)


def test_the_same_machine_may_go_on() -> None:
    history.check([anchor(0.040)])
    history.check([anchor(0.040), anchor(0.060), anchor(0.041)])


@pytest.mark.parametrize("now", [0.030, 0.055])
def test_another_machine_is_refused_with_the_remedy(now: float) -> None:
    with pytest.raises(history.SeriesError, match="TORCHCOMPILE_SUITE_MACHINE=NAME") as error:
        history.check([anchor(0.040), anchor(now)])
    assert "\n" not in str(error.value)


def test_a_noisy_hour_is_no_other_machine() -> None:
    quiet, noisy = (
        msgspec.structs.replace(
            measurement,
            launches=[
                msgspec.structs.replace(launch, calibration_s=taken_s)
                for launch in measurement.launches
            ],
        )
        for measurement, taken_s in ((anchor(0.040), 1.0e-4), (anchor(0.055), 1.4e-4))
    )
    with pytest.raises(history.SeriesError, match=r"1\.40 times as slow; run the same"):
        history.check([quiet, noisy])


def test_an_anchor_that_failed_stops_the_series() -> None:
    with pytest.raises(history.SeriesError, match="could not be measured"):
        history.check([])


def test_the_anchor_has_a_history_of_its_own(tmp_path: Path) -> None:
    release = catalogue.find(history.ANCHOR_RELEASE)
    commit = next(sha for sha, one in ledger.compute()[0].items() if one == release)
    file = records.path(tmp_path, commit, "virtualenv-py3.11")
    for eager_s in (0.040, 0.042):
        records.append(file, anchor(eager_s))
        records.append(file, examples.measurement())
    older = [msgspec.structs.replace(each, method=2) for each in anchor(0.050).launches]
    records.append(file, msgspec.structs.replace(anchor(0.050), launches=older))
    anchors = history.anchor_measurements(tmp_path, release)
    assert [anchor.launches[1].pairs_s[0][0] for anchor in anchors] == [0.040, 0.042]


def test_a_series_has_the_newest_patch_of_every_minor() -> None:
    # A release that is added later must not change the expectation.
    releases = [
        release for release in catalogue.read() if Version(release.version) < Version("2.16")
    ]
    newest = history.newest_patches(releases)
    assert [release.minor for release in newest] == [f"2.{minor}" for minor in range(4, 16)]
    assert all(catalogue.newest_patch(one.minor, releases) == one for one in newest)


def test_the_history_touches_every_family_and_can_be_selected() -> None:
    from torchcompile_suite import workloads

    families = {workloads.get(name).family for name in workloads.names()}
    assert {workloads.get(cell.workload).family for cell in matrix.HISTORY} == families
    assert all(matrix.pattern(cell) for cell in matrix.HISTORY)
