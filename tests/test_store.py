"""The store: segments are kept for ever, journals are sealed, stores are merged."""

from __future__ import annotations

import lzma
import os
import random
import shutil
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.cell import Cell
from torchcompile_suite.cli.app import app
from torchcompile_suite.conditions import Overlay
from torchcompile_suite.measurement import Measurement, Outcome, Status
from torchcompile_suite.results import parsing, records, sealing, segments
from torchcompile_suite.results.segments import Header, Segment, canonical, record_id

from . import examples
from .irregular import IRREGULAR

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENV = "virtualenv-py3.11"
HEADER = Header("box", "2.9.1", COMMIT[:8], ENV)
MODES = ["eager", "default", "max-autotune"]


def journal(results: Path, machine: str = "box") -> Path:
    return records.path(results / machine, COMMIT, ENV)


def made(mode: str = "default", second: int = 0, scale: float = 1.0) -> Measurement:
    measurement = examples.measurement(mode=mode, scale=scale)
    started = f"2026-11-21T03:{second // 60:02}:{second % 60:02}+00:00"
    return msgspec.structs.replace(measurement, started_at=started)


def line(measurement: Measurement) -> bytes:
    return canonical(msgspec.json.encode(measurement))


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def identities(results: Path) -> set[str]:
    return {
        entry.identity
        for folder in records.machine_folders(results)[0]
        for files in records.files(folder)[0].values()
        for entries, _ in parsing.read_files(files)
        for entry in entries
    }


def history(file: Path, cell: Cell) -> list[Measurement]:
    """The measurements of the cell at the place of the journal, each once, oldest first."""
    found = {
        entry.identity: entry
        for entries, _ in parsing.read_files(records.files(file.parent)[0].get(file, ()))
        for entry in entries
        if entry.measurement.cell == cell
    }
    return [entry.measurement for entry in sorted(found.values(), key=lambda one: one.order)]


# The one form of a measurement.


def test_the_same_value_has_one_form() -> None:
    one = b'{"b": [1.0, 2e3, 0.1], "a": {"d": null, "c": "\\u00e9"}}'
    other = '{"a":{"c":"é","d":null},"b":[1,2000,0.10]}'.encode()
    assert (
        canonical(one) == canonical(other) == '{"a":{"c":"é","d":null},"b":[1,2000,0.1]}'.encode()
    )
    assert record_id(canonical(one)) == record_id(canonical(other))


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b'"\\ud800"', b"{", b"1e999"])
def test_what_is_no_json_has_no_form(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical(text)


@given(examples.measurements)
def test_the_form_is_the_same_measurement(measurement: Measurement) -> None:
    form = line(measurement)
    assert canonical(form) == form
    assert b"\n" not in form
    assert msgspec.json.decode(form, type=Measurement) == measurement


@given(examples.measurements, st.randoms())
def test_neither_the_order_of_keys_nor_space_makes_another_measurement(
    measurement: Measurement, chosen: random.Random
) -> None:
    import json

    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            items = list(value.items())
            chosen.shuffle(items)
            return {key: shuffled(one) for key, one in items}
        return [shuffled(one) for one in value] if isinstance(value, list) else value

    text = json.dumps(shuffled(json.loads(msgspec.json.encode(measurement))), indent=1)
    assert canonical(text.encode()) == line(measurement)


def test_another_figure_is_another_measurement() -> None:
    forms = {
        line(made(scale=1.0)),
        line(made(scale=1.1)),
        line(made(second=1)),
        line(made("eager")),
    }
    assert len({record_id(form) for form in forms}) == 4


# Segments.


def test_a_segment_comes_back_and_is_never_written_twice(tmp_path: Path) -> None:
    segment = Segment(HEADER, [line(made()), line(made("eager"))])
    file = segments.write(tmp_path / "box", segment)
    assert file.parent == tmp_path / "box" / "2.9.1"
    assert segments.read(file) == segment
    assert segments.header(file) == HEADER
    before = file.stat()
    assert segments.write(tmp_path / "box", segment) == file
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert lzma.decompress(file.read_bytes()).count(b"\n") == 3


def test_long_pieces_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b"x" * 30] * 10
    monkeypatch.setattr(segments, "PIECE_BYTES", 100)
    found = list(segments.pieces(lines))
    assert [one for piece in found for one in piece] == lines
    assert all(len(piece) == 3 for piece in found[:-1])
    monkeypatch.setattr(segments, "PIECE_BYTES", 1)
    assert [len(piece) for piece in segments.pieces(lines)] == [1] * 10


def _hashed(folder: Path, data: bytes) -> Path:
    """A file whose name fits its bytes."""
    file = folder / "box" / "2.9.1" / segments.name_of(data)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def _compressed(*lines: bytes) -> bytes:
    return lzma.compress(b"".join(one + b"\n" for one in lines))


HEAD = msgspec.json.encode(HEADER)
GOOD = line(made())


def _hungry() -> bytes:
    """A stream that asks its reader for a gigabyte; see the XZ file format, 3.1 and 5.3.1."""
    data = bytearray(_compressed(HEAD, GOOD))
    end = 12 + (data[12] + 1) * 4 - 4
    data[16] = 36
    data[end : end + 4] = zlib.crc32(data[12:end]).to_bytes(4, "little")
    return bytes(data)


DAMAGED: dict[str, tuple[bytes, str]] = {
    "truncated": (_compressed(HEAD, GOOD)[:-20], "cannot be decompressed"),
    "two streams": (_compressed(HEAD) + _compressed(GOOD), "not one whole stream"),
    "no stream": (b"text", "cannot be decompressed"),
    "empty file": (b"", "cannot be decompressed"),
    "empty content": (lzma.compress(b""), "its first line is no header"),
    "no header": (_compressed(GOOD), "its first line is no header"),
    "deep header": (_compressed(b"[" * 100_000), "its first line is no header"),
    "newer format": (_compressed(HEAD.replace(b'"format":1', b'"format":2')), "newer version"),
    "other machine": (_compressed(HEAD.replace(b"box", b"fox"), GOOD), "it belongs into 'fox/"),
    "other release": (_compressed(HEAD.replace(b"2.9.1", b"2.9.2"), GOOD), "it belongs into"),
    "path": (_compressed(HEAD.replace(ENV.encode(), b"../../x"), GOOD), "no header"),
    "bomb": (lzma.compress(HEAD + b"\n" + bytes(17 << 20)), "expands to more than 16 MiB"),
    "memory": (_hungry(), "cannot be decompressed"),
    "alone": (lzma.compress(HEAD, format=lzma.FORMAT_ALONE), "cannot be decompressed"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_segment_is_named_and_the_rest_is_read(tmp_path: Path, what: str) -> None:
    segments.write(tmp_path / "box", Segment(HEADER, [GOOD]))
    data, text = DAMAGED[what]
    file = _hashed(tmp_path, data)
    content = records.read(tmp_path)
    assert [record.measurement for record in content.records] == [made()]
    (problem,) = content.problems
    assert problem.where == f"box/2.9.1/{file.name}"
    assert text in problem.reason
    assert "\n" not in str(problem)
    assert history(journal(tmp_path), made().cell) == [made()]


def test_a_changed_byte_is_seen(tmp_path: Path) -> None:
    file = segments.write(tmp_path / "box", Segment(HEADER, [GOOD]))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    (problem,) = records.read(tmp_path).problems
    assert "its name is not the SHA-256 of its bytes" in problem.reason
    # The same measurements again: the damaged file is replaced.
    segments.write(tmp_path / "box", Segment(HEADER, [GOOD]))
    assert records.read(tmp_path).problems == []


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "box" / "2.9.1" / f"0{segments.SUFFIX}"
    file.parent.mkdir(parents=True)
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    (problem,) = records.read(tmp_path).problems
    assert str(problem) == f"box/2.9.1/{file.name}: cannot be read: larger than 16 MiB"


def test_a_bad_line_of_a_sound_segment_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    huge = b'{"schema":1,"x":"' + b"x" * parsing.LONGEST_LINE + b'"}'
    newer = b'{"schema": 99}'
    segment = Segment(HEADER, [newer, GOOD, b"", b"[" * 100_000, huge])
    file = segments.write(tmp_path / "box", segment)
    content = records.read(tmp_path)
    assert [record.measurement for record in content.records] == [made()]
    (problem,) = content.problems
    assert problem.where == f"box/2.9.1/{file.name}:2"
    assert problem.reason.endswith("(the first of 3 bad lines)")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", IRREGULAR)
def test_only_regular_files_are_segments(tmp_path: Path, place: str) -> None:
    segments.write(tmp_path / "box", Segment(HEADER, [GOOD]))
    odd = tmp_path / "box" / "2.9.1" / f"odd{segments.SUFFIX}"
    with IRREGULAR[place](odd):
        content = records.read(tmp_path)
        merged = sealing.merge(tmp_path / "other", tmp_path)
    assert len(content.records) == 1
    assert list(map(str, content.problems)) == [
        f"box/2.9.1/{odd.name}: cannot be read: not a regular file"
    ]
    assert merged.problems == content.problems
    assert merged.added == 1


def test_links_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    file = segments.write(outside / "box", Segment(HEADER, [GOOD]))
    results = tmp_path / "results"
    (results / "real" / "2.4.1").mkdir(parents=True)
    (results / "box").symlink_to(outside / "box")
    (results / "real" / "2.9.1").symlink_to(file.parent)
    (results / "real" / "2.4.1" / file.name).symlink_to(file)
    content = records.read(results)
    assert content.records == []
    assert list(map(str, content.problems)) == [
        "box: a link, which is not followed",
        "real/2.9.1: a link, which is not followed",
        f"real/2.4.1/{file.name}: cannot be read: not a regular file",
    ]


@given(data=st.binary(max_size=200))
def test_no_bytes_break_the_reader_of_segments(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("results")
    for content in (data, lzma.compress(data), lzma.compress(HEAD + b"\n" + data)):
        _hashed(folder, content)
    records.read(folder)


# Sealing.


def test_sealed_measurements_read_as_before(tmp_path: Path) -> None:
    file = journal(tmp_path)
    for second, mode in enumerate(["eager", "default", "eager"]):
        records.append(file, made(mode, second))
    before = records.read(tmp_path), history(file, made("eager").cell)
    sealed = sealing.seal(tmp_path / "box")
    assert sealed.problems == []
    assert not file.exists()
    assert (sealed.segments, []) == records.segment_files(tmp_path / "box")
    after = records.read(tmp_path), history(file, made("eager").cell)
    assert after == before
    assert records.newest(file, made("eager").cell) == made("eager", 2)
    assert len(list(records.launches(tmp_path / "box"))) == 9
    assert sealing.seal(tmp_path / "box") == sealing.Sealed([], [])


def test_a_journal_and_segments_are_one_history(tmp_path: Path) -> None:
    file = journal(tmp_path)
    for second in (5, 1, 9):
        records.append(file, made(second=second))
        sealing.seal(tmp_path / "box")
    records.append(file, made(second=7))
    records.append(file, made(second=5))  # known already
    assert history(file, made().cell) == [made(second=second) for second in (1, 5, 7, 9)]
    assert records.newest(file, made().cell) == made(second=9)
    (record,) = records.read(tmp_path).records
    assert record.measurement == made(second=9)


def test_the_same_cell_elsewhere_is_another_history(tmp_path: Path) -> None:
    places = [
        records.path(tmp_path / "box", commit, env)
        for commit in (COMMIT, COMMIT[::-1])
        for env in (ENV, "try")
    ]
    for second, file in enumerate(places):
        records.append(file, made(second=second))
    sealing.seal(tmp_path / "box")
    for second, file in enumerate(places):
        assert history(file, made().cell) == [made(second=second)]
    assert len(records.read(tmp_path).records) == 4


@pytest.mark.parametrize("rest", [b'{"schema": 99, "new": 1}\n', b'{"cell": {"wor', b"\xff\n\x00"])
def test_what_is_no_measurement_stays_in_the_journal(tmp_path: Path, rest: bytes) -> None:
    file = journal(tmp_path)
    records.append(file, made())
    with file.open("ab") as stream:
        stream.write(rest)
    sealed = sealing.seal(tmp_path / "box")
    assert len(sealed.segments) == 1
    (problem,) = sealed.problems
    assert problem.where == f"box/{file.name}:2"
    assert file.read_bytes() == rest
    records.append(file, made("eager"))
    assert len(records.read(tmp_path).records) == 2


def test_a_line_that_is_too_long_keeps_what_follows(tmp_path: Path) -> None:
    file = journal(tmp_path)
    records.append(file, made())
    rest = b"x" * (2 * parsing.LONGEST_LINE + 5) + b"\n" + GOOD + b"\n"
    with file.open("ab") as stream:
        stream.write(rest)
    sealing.seal(tmp_path / "box")
    assert file.read_bytes() == rest


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", IRREGULAR)
def test_what_is_no_journal_is_not_sealed(tmp_path: Path, place: str) -> None:
    with IRREGULAR[place](journal(tmp_path)):
        sealed = sealing.seal(tmp_path / "box")
    assert sealed.segments == []
    (problem,) = sealed.problems
    assert "not a regular file" in problem.reason


def test_a_full_disk_keeps_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records.append(journal(tmp_path), made())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(segments, "write_atomically", full)
        sealed = sealing.seal(tmp_path / "box")
    assert [problem.reason for problem in sealed.problems] == [
        "cannot be sealed: No space left on device"
    ]
    assert len(records.read(tmp_path).records) == 1
    assert len(sealing.seal(tmp_path / "box").segments) == 1


def test_a_link_in_place_of_the_releases_folder_keeps_the_journal(tmp_path: Path) -> None:
    """Results may come from a stranger, and with them a link. What it leads to is not read."""
    records.append(journal(tmp_path), made())
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "box" / "2.9.1").symlink_to(outside, target_is_directory=True)
    sealed = sealing.seal(tmp_path / "box")
    assert [problem.reason for problem in sealed.problems] == [
        "cannot be sealed: a link in place of a folder"
    ]
    assert list(outside.iterdir()) == []
    assert history(journal(tmp_path), made().cell) == [made()]


def test_a_kill_between_the_segment_and_the_journal_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    file = journal(tmp_path)
    records.append(file, made(second=1))
    kept = file.read_bytes()
    sealing.seal(tmp_path / "box")
    file.write_bytes(kept)  # as if the journal had not been removed
    assert history(file, made().cell) == [made(second=1)]
    records.append(file, made(second=2))
    sealing.seal(tmp_path / "box")
    assert history(file, made().cell) == [made(second=1), made(second=2)]


def test_a_run_and_a_sealing_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = journal(tmp_path)
    count = 30

    def run() -> None:
        for second in range(count):
            records.append(file, made(second=second))

    def seal() -> None:
        while runner.is_alive():
            sealing.seal(tmp_path / "box")

    runner, sealer = threading.Thread(target=run), threading.Thread(target=seal)
    runner.start()
    sealer.start()
    seen = ""
    while sealer.is_alive():
        newest = records.newest(file, made().cell)
        now = newest.started_at if newest else ""
        assert now >= seen, "a look-up misses nothing that is being sealed"
        seen = now
    runner.join()
    sealing.seal(tmp_path / "box")
    assert len(history(file, made().cell)) == count


@pytest.mark.parametrize(
    ("measurement", "folder"),
    [
        (made(), "2.9.1"),
        (examples.measurement(outcome=Outcome(Status.CRASH, "killed")), COMMIT[:8]),
    ],
)
def test_the_folder_is_the_release(tmp_path: Path, measurement: Measurement, folder: str) -> None:
    records.append(journal(tmp_path), measurement)
    (file,) = sealing.seal(tmp_path / "box").segments
    assert file.parent.name == folder


@pytest.mark.parametrize("torch", ["../../x", "", "a/b", ".hidden", "x" * 100, "2.9.1\n"])
def test_a_release_that_is_no_folder_name_is_the_commit(tmp_path: Path, torch: str) -> None:
    records.append(journal(tmp_path), _with_environment(torch=torch))
    (file,) = sealing.seal(tmp_path / "box").segments
    assert file.parent == tmp_path / "box" / COMMIT[:8]


def test_a_commit_over_a_release_has_a_folder_of_its_own(tmp_path: Path) -> None:
    records.append(journal(tmp_path), _with_environment(overlay=Overlay("2.9.1", COMMIT)))
    (file,) = sealing.seal(tmp_path / "box").segments
    assert file.parent.name == COMMIT[:8]


def _with_environment(**changes: object) -> Measurement:
    measurement = made()
    launches = [
        msgspec.structs.replace(
            launch, environment=msgspec.structs.replace(examples.environment(), **changes)
        )
        for launch in measurement.launches
    ]
    return msgspec.structs.replace(measurement, launches=launches)


# Merging.


def description(results: Path, machine: str = "box", **fields: str) -> None:
    (results / machine).mkdir(parents=True, exist_ok=True)
    content = {"machine": machine, "cpu": "x", "os": "Linux", **fields, "version": 1}
    (results / machine / "machine.json").write_bytes(msgspec.json.encode(content))


# Measurements as they come to stores: which machine, which of the possible ones, sealed or not.
contributions = st.lists(
    st.tuples(
        st.sampled_from(["box", "fox"]),
        st.sampled_from([made(mode, second) for mode in MODES for second in range(3)]),
        st.booleans(),
    ),
    max_size=8,
)


def store(folder: Path, content: list[tuple[str, Measurement, bool]]) -> Path:
    folder.mkdir(parents=True)
    for machine, measurement, sealed in content:
        description(folder, machine)
        records.append(journal(folder, machine), measurement)
        if sealed:
            sealing.seal(folder / machine)
    return folder


@given(content=st.lists(contributions, min_size=2, max_size=4), chosen=st.randoms())
def test_any_order_of_merges_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    content: list[list[tuple[str, Measurement, bool]]],
    chosen: random.Random,
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    stores = [store(folder / str(number), one) for number, one in enumerate(content)]
    everything = set.union(*map(identities, stores))
    trees = []
    for attempt in ("one", "other"):
        order = chosen.sample(stores, len(stores))
        target = shutil.copytree(order[0], folder / attempt)
        for source in [*order[1:], *chosen.sample(stores, len(stores))]:  # all of them twice
            before = tree(source)
            assert sealing.merge(target, source).problems == []
            assert tree(source) == before
        trees.append(tree(target))
    assert trees[0] == trees[1]
    assert identities(folder / "one") == everything
    # Associative, too: the merge of merges.
    nested = folder / "nested"
    for source in (folder / "one", folder / "other"):
        sealing.merge(nested, source)
    assert tree(nested) == trees[0]


@given(
    content=contributions,
    parts=st.integers(min_value=1, max_value=5),
    chosen=st.randoms(),
)
def test_any_split_merges_back_into_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    content: list[tuple[str, Measurement, bool]],
    parts: int,
    chosen: random.Random,
) -> None:
    """The files of a store are divided as they come, some into several parts, and come together."""
    folder = tmp_path_factory.mktemp("split")
    whole = store(folder / "whole", content)
    for machine in whole.iterdir():
        sealing.seal(machine)
    wanted = tree(whole)
    stores = [folder / f"part-{number}" for number in range(parts)]
    for name, data in wanted.items():
        for part in {chosen.choice(stores) for _ in range(chosen.randint(1, 3))}:
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(data)
    torn = 0
    for name, data in wanted.items():
        if name.endswith(segments.SUFFIX) and chosen.random() < 0.3:
            # One of the copies was damaged on its way.
            (folder / "damaged" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "damaged" / name).write_bytes(data[: chosen.randrange(len(data))])
            torn += 1
    target = folder / "target"
    present = [part for part in [*stores, folder / "damaged"] if part.exists()]
    problems = []
    for source in [*chosen.sample(present, len(present)), *chosen.sample(present, len(present))]:
        problems += sealing.merge(target, source).problems
    assert (tree(target) if target.exists() else {}) == wanted
    assert len(problems) == 2 * torn


def test_a_damaged_file_is_named_and_left_out(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    records.append(journal(source), made())
    (good,) = sealing.seal(source / "box").segments
    bad = _hashed(source, DAMAGED["truncated"][0])
    merged = sealing.merge(target, source)
    assert merged.added == 1
    assert [problem.where for problem in merged.problems] == [f"box/2.9.1/{bad.name}"]
    assert list(tree(target)) == [str(good.relative_to(source))]


def test_the_command_names_what_it_left_out(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    records.append(journal(source), made())
    sealing.seal(source / "box")

    def merged(*sources: Path) -> Result:
        return CliRunner().invoke(app, ["results", "merge", *map(str, (target, *sources))])

    done = merged(source)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{source}: new files in {target}: 1\n"
    bad = _hashed(source, DAMAGED["truncated"][0])
    done = merged(source)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"left out: box/2.9.1/{bad.name}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == f"{source}: new files in {target}: 0\n"
    done = merged(tmp_path / "none", source)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"torchcompile-suite: {tmp_path / 'none'} is no folder\n"


def test_another_machine_of_the_same_name_is_left_out(tmp_path: Path) -> None:
    for name, cpu in (("a", "x"), ("b", "y")):
        description(tmp_path / name, cpu=cpu)
        records.append(journal(tmp_path / name), made(scale=len(cpu + name)))
        description(tmp_path / name, machine=f"only-{name}")
    merged = sealing.merge(tmp_path / "a", tmp_path / "b")
    (problem,) = merged.problems
    assert problem.where == "box/machine.json"
    assert "choose another name" in problem.reason
    assert merged.added == 0
    assert (tmp_path / "a" / "only-b" / "machine.json").exists()


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"machine": "another"}', b"[" * 100_000, b"\xff"])
def test_a_broken_description_is_named_and_replaced_by_a_sound_one(
    tmp_path: Path, text: bytes
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    description(a)
    description(b)
    (b / "box" / "machine.json").write_bytes(text)
    merged = sealing.merge(a, b)
    assert [problem.where for problem in merged.problems] == ["box/machine.json"]
    sealing.merge(b, a)
    assert tree(a) == tree(b)


def test_other_words_for_one_machine_make_no_order(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    description(a, os="Linux")
    description(b, os="Darwin")
    for target, source in ((a, b), (b, a)):
        assert sealing.merge(target, source).problems == []
    assert tree(a) == tree(b)


def test_a_measuring_process_needs_no_package_for_it() -> None:
    """The environment of a release has msgspec, NumPy and torch; it reads and writes records."""
    code = (
        "import sys; sys.modules.update({name: None for name in "
        "('asv', 'dulwich', 'filelock', 'jinja2', 'click')});"
        "from torchcompile_suite.results import records, segments"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
