"""A summary gives the figures of the whole measurement, and is made once for each segment."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given

from torchcompile_suite.analysis import change, coverage, statistics, summaries, summary
from torchcompile_suite.analysis.ends import both_ends
from torchcompile_suite.cell import Cell
from torchcompile_suite.conditions import HostState, Interference
from torchcompile_suite.measurement import Launch, Measurement, Outcome, Status
from torchcompile_suite.modes import MODES
from torchcompile_suite.results import cached, machines, parsing, records, sealing, segments
from torchcompile_suite.results.parsing import decode

from . import examples

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENV = "virtualenv-py3.11"


pytestmark = pytest.mark.usefixtures("empty_cache")


def measured(seed: int) -> list[Measurement]:
    """The measurements of a release: no two calls alike, a failure, both ends of the heap."""
    chosen = random.Random(seed)

    def varied(launch: Launch) -> Launch:
        def call() -> float:
            return 0.01 * chosen.lognormvariate(0, 0.3)

        return msgspec.structs.replace(
            launch,
            pairs_s=[(call(), call()) for _ in launch.pairs_s],
            warm_up_s=[chosen.uniform(1, 30), *(call() for _ in launch.warm_up_s[1:])],
            compiler_import_s=chosen.uniform(0, 3),
            calibration_s=chosen.uniform(1e-4, 1.1e-4),
        )

    made = [
        *(examples.measurement(mode=mode) for mode in ("eager", "default", "max-autotune")),
        examples.measurement("vit", outcome=Outcome(Status.CRASH, "killed")),
        examples.twin("settled", 0.02, 0.01, (0, 0)),
        examples.twin("default", 0.03, 0.02, (5000, 0)),
    ]
    return [
        msgspec.structs.replace(
            one, launches=[varied(each) if each.timed else each for each in one.launches]
        )
        for one in made
    ]


def store(results: Path, seed: int, commit: str = COMMIT) -> None:
    for measurement in measured(seed):
        records.append(records.path(results / "box", commit, ENV), measurement)


def test_every_report_is_the_same(tmp_path: Path) -> None:
    store(tmp_path, 1)
    store(tmp_path, 2, COMMIT[::-1])
    sealing.seal(tmp_path / "box")
    store(tmp_path, 3, "f" * 40)  # in a journal
    whole = records.read(tmp_path)
    for _ in range(2):  # made now, and from the cache
        found = summaries.read(tmp_path)
        assert found.problems == whole.problems == []
        assert len(found.records) == 18
        assert summary.rows(found.records) == summary.rows(whole.records)
        assert machines.standings(found.records) == machines.standings(whole.records)
        both = [_answers(one) for one in (found, whole)]
        assert repr(both[0]) == repr(both[1])


def _answers(content: records.Records) -> list[object]:
    """What comparisons, both ends and coverage say, place by place."""
    places = sorted({record.commit for record in content.records})
    measurements = {
        place: [record.measurement for record in content.records if record.commit == place]
        for place in places
    }
    sides = [change.Side("2.9.1", measurements[place]) for place in places[:2]]
    wanted = [Cell("resnet18", 1, mode) for mode in MODES]
    covered = coverage.coverage(measurements[places[0]], wanted, "cpu")
    return [
        change.compare("box", *sides),
        [both_ends(of_place) for of_place in measurements.values()],
        covered._replace(ended={}),
        [
            (statistics.first_call_of(launch), statistics.figures(launch))
            for of_place in measurements.values()
            for measurement in of_place
            for launch in measurement.launches
            if launch.timed
        ],
    ]


@given(examples.measurements)
def test_a_summary_has_everything_but_samples(measurement: Measurement) -> None:
    whole = decode(msgspec.json.encode(_whole(measurement)))
    short = summaries.condensed(whole)
    assert summaries.condensed(short) == short
    assert short.environment == whole.environment
    for one, other in zip(short.launches, whole.launches, strict=True):
        assert one.timed == other.timed
        assert (one.pairs_s, one.warm_up_s) == ([], [])
        assert statistics.handoff_ns(one) == statistics.handoff_ns(other) == 120
        assert one.interference is not None
        assert one.interference.host == msgspec.structs.replace(HOST, handoff_ns=[120])
        apart = {"pairs_s", "warm_up_s", "environment", "interference"}
        for name in set(Launch.__struct_fields__) - apart:
            assert getattr(one, name) == getattr(other, name)


HOST = HostState([300, 100, 120], 1.0, 40.0)


def _whole(measurement: Measurement) -> Measurement:
    """The measurement, with times where its outcome needs them."""
    times = {
        "pairs_s": [(0.1, 0.2)],
        "warm_up_s": [1.0],
        "interference": Interference(0, 0, None, HOST),
    }
    launches = [
        msgspec.structs.replace(one, **times) for one in measurement.launches or [examples.launch()]
    ]
    return msgspec.structs.replace(measurement, launches=launches)


def test_the_measurements_of_a_segment_share_their_packages(tmp_path: Path) -> None:
    """A hundred packages in each of a thousand measurements would fill the memory."""
    for place, mode in enumerate(("eager", "default", "max-autotune", "reduce-overhead")):
        one = examples.measurement(mode=mode)
        environment = msgspec.structs.replace(
            examples.environment("2.9.1+cpu" if place < 3 else "2.9.1+cu128"), load_1min=place / 10
        )
        # The launch that knows the environment is not always the first one.
        launches = [
            msgspec.structs.replace(launch, environment=environment if number else None)
            for number, launch in enumerate(one.launches)
        ]
        one = msgspec.structs.replace(one, launches=launches)
        records.append(records.path(tmp_path / "box", COMMIT, ENV), one)
    sealing.seal(tmp_path / "box")
    whole = {one.measurement.cell: one.measurement for one in records.read(tmp_path).records}
    for _ in range(2):  # made now, and from the cache
        found = [one.measurement for one in summaries.read(tmp_path).records]
        assert [one.environment for one in found] == [whole[one.cell].environment for one in found]
        packages = [one.environment.packages for one in found if one.environment]
        assert len(packages) == 4
        assert len(set(map(id, packages))) == 2


def test_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, 1)
    sealing.seal(tmp_path / "box")
    summaries.read(tmp_path)
    store(tmp_path, 2, COMMIT[::-1])
    (new,) = sealing.seal(tmp_path / "box").segments
    read: list[Path] = []
    original = parsing.read_segment

    def watched(file: Path) -> parsing.Read[list[parsing.Entry]]:
        read.append(file)
        return original(file)

    monkeypatch.setattr(parsing, "read_segment", watched)
    assert len(summaries.read(tmp_path).records) == 12
    assert read == [new]


def test_other_code_makes_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, 1)
    sealing.seal(tmp_path / "box")
    summaries.read(tmp_path)
    monkeypatch.setattr(cached, "version", lambda *_: "another")
    before = set((tmp_path / "cache").rglob("*"))
    assert len(summaries.read(tmp_path).records) == 6
    assert set((tmp_path / "cache").rglob("*")) > before


def test_a_damaged_cache_is_no_harm(tmp_path: Path) -> None:
    store(tmp_path, 1)
    sealing.seal(tmp_path / "box")
    before = summaries.read(tmp_path)
    (kept,) = (file for file in (tmp_path / "cache").rglob("*") if file.is_file())
    sound = kept.read_bytes()
    for content in (b"", b"\xc1" * 100, sound[:-1], sound + b"x"):
        kept.write_bytes(content)
        assert repr(summaries.read(tmp_path)) == repr(before)
        assert kept.read_bytes() == sound, "it is made anew"


def test_bad_lines_and_moved_files_are_named_each_time(tmp_path: Path) -> None:
    store(tmp_path, 1)
    (file,) = sealing.seal(tmp_path / "box").segments
    header, lines = segments.read(file)
    bad = segments.write(tmp_path / "box", segments.Segment(header, [*lines, b"{"]))
    for _ in range(2):
        found = summaries.read(tmp_path)
        assert len(found.records) == 6
        assert [one.where for one in found.problems] == [f"box/2.9.1/{bad.name}:{len(lines) + 2}"]
    (tmp_path / "box").rename(tmp_path / "fox")
    found = summaries.read(tmp_path)
    assert found.records == []
    assert len(found.problems) == 2
    assert all("it belongs into 'box/2.9.1'" in one.reason for one in found.problems)


def test_a_function_of_samples_refuses_a_summary(tmp_path: Path) -> None:
    """Rather than to compute a figure of the samples that remain."""
    launch = summaries.condensed(examples.measurement()).launches[0]
    with pytest.raises(ValueError, match="no median"):
        statistics.launch_ratio(launch.pairs_s)
    with pytest.raises(ValueError, match="no median"):
        statistics.compile_cost(launch.warm_up_s)


@pytest.mark.parametrize("name", ["a.py", "deep/er/b.py", "claims.toml", "deep/breaks.csv"])
def test_the_version_of_a_folder_is_that_of_all_its_code(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    versions = set()
    for content in ("old", "new"):
        file.write_text(content)
        cached.version.cache_clear()
        versions.add(cached.version(tmp_path))
    assert len(versions) == 2
    (tmp_path / "picture.png").write_bytes(b"x")
    cached.version.cache_clear()
    assert cached.version(tmp_path) in versions


def test_any_change_of_the_package_makes_everything_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody lists the files that decide on a figure: one would be forgotten."""
    assert (cached.PACKAGE / "results" / "records.py").exists()
    monkeypatch.setattr(cached, "PACKAGE", tmp_path / "package")
    file = tmp_path / "package" / "room" / "rule.py"
    file.parent.mkdir(parents=True)
    found = []
    for rule in ("newest", "newest", "oldest"):
        file.write_text(rule)
        cached.version.cache_clear()
        made = partial(cached.Made, rule.encode())
        found.append(cached.get("test", [str(tmp_path)], made))
    assert found == [b"newest", b"newest", b"oldest"]
    cached.version.cache_clear()


def test_the_key_has_no_seams() -> None:
    kept = [
        cached.get("seams", key, partial(cached.Made, repr(key).encode()))
        for key in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""))
    ]
    assert len(set(kept)) == 4
