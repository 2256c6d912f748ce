"""All documents of one machine in packs, and the index that says which pack has which document.

What a machine's documents are made of seldom changes, so the packs are kept in the user's cache
(`results.cached`). A machine with a file that cannot be read is made anew each time, so that the
file is named each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from .. import matrix, workloads
from ..results import cached
from ..results.cached import Made
from ..results.machines import Standing
from ..results.parsing import Problem
from . import content, packs
from .axis import Axis
from .content import Code, Machine
from .documents import answers, fastest, figures, launches, overview, pairs
from .packs import Encoded

# Documents that the first view reads are in small packs.
SMALL_BYTES = 4_000
LARGE_BYTES = 150_000

_Documents = Iterable[tuple[str, Any]]


class Shards(msgspec.Struct):
    """What the site keeps of a machine.

    - ``standing``: how complete its results are.
    - ``entry``: its entry in the manifest. ``points``: its points, in words.
    - ``texts``: the packs, by name.
    - ``plain``: the documents of the newest point that pages show without a script. ``steps``:
      what each point changed.
    """

    standing: Standing
    entry: dict[str, Any]
    points: dict[str, dict[str, str]]
    texts: dict[str, str]
    plain: dict[str, Any]


# What is in the cache: nothing of a machine without a measurement that can be shown.
_Kept = tuple[Shards | None, list[Problem]]


def of_machine(folder: Path, axis: Axis, code: Code) -> tuple[Shards | None, list[Problem]]:
    """The shards of a machine's folder, and what cannot be read or shown.

    None for a machine that has nothing to show.
    """
    unread: list[Problem] = []

    def make() -> Made:
        machine, unread[:], left_out = content.load(folder, axis, code)
        kept: _Kept = (None if machine is None else _shards(machine), left_out)
        return Made(msgspec.msgpack.encode(kept), keep=not unread)

    made = cached.get("site", _key(axis, code, [folder]), make)
    found, left_out = msgspec.msgpack.decode(made, type=_Kept)
    return found, [*unread, *left_out]


def of_class(hardware: str, folders: Sequence[Path], axis: Axis, code: Code) -> Shards | None:
    """The shards of the assembled history of a class; None if one machine has all cells.

    What cannot be read is named by `of_machine`, and left out here.
    """

    def make() -> Made:
        loaded = [content.load(folder, axis, code) for folder in folders]
        machines = [one.machine for one in loaded if one.machine is not None]
        whole = content.assembled(hardware, machines, axis, code) if machines else None
        found = _shards(whole) if whole is not None and whole.several else None
        return Made(msgspec.msgpack.encode(found), keep=not any(one.unread for one in loaded))

    made = cached.get("site", ["class", repr(hardware), *_key(axis, code, folders)], make)
    return msgspec.msgpack.decode(made, type=Shards | None)


def _key(axis: Axis, code: Code, folders: Sequence[Path]) -> list[bytes | str]:
    """What tells the shards of these folders, for `cached`: the results, and what else they depend
    on, which is the code, the axes of questions, and the points.
    """
    axes = repr([question.axes for question in matrix.QUESTIONS.values()])
    identities = [part for folder in folders for part in content.identity(folder)]
    generated = msgspec.msgpack.encode(sorted(code.items()))
    return [cached.version(*workloads.files()), axes, *axis.key, generated, *identities]


def _shards(machine: Machine) -> Shards:
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    every: dict[str, Encoded] = {}
    for of_kind, most_bytes in _documents(machine):
        documents = {key: packs.encode(one) for key, one in of_kind}
        every |= documents
        places |= packs.add(documents.items(), most_bytes, texts)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(places.values()))}
    index = {
        "packs": list(numbers),
        "documents": {key: numbers[name] for key, name in places.items()},
        "buckets": machine.buckets,
    }
    entry = {
        "name": machine.name,
        "title": machine.title,
        "device": machine.device,
        "warning": machine.older_method,
        "points": machine.points,
        **packs.add([("index", packs.encode(index))], LARGE_BYTES, texts),
        **({"machines": machine.machines} if machine.several else {}),
    }
    points = {point: machine.axis.facts(point)._asdict() for point in machine.points}
    plain = {**_plain(machine.points[-1], every), "steps": _steps(machine, every)}
    return Shards(machine.standing, entry, points, texts, plain)


def _plain(newest: str, documents: dict[str, Encoded]) -> dict[str, Any]:
    """The documents of the newest point that pages show without a script, by kind.

    Those of the means by question, as far as the point has cells of it.
    """
    keys = {"trust": "trust"}
    keys |= {kind: f"{kind}/{newest}" for kind in ("overview", "claims", "answers")}
    plain = {kind: packs.decode(documents[key].data) for kind, key in keys.items()}
    questions = dict.fromkeys(group["question"] for group in plain["overview"]["groups"])
    means = {name: packs.decode(documents[f"means/{name}"].data) for name in questions}
    return {**plain, "means": means}


def _steps(machine: Machine, documents: dict[str, Encoded]) -> dict[str, Any]:
    """What each point changed against the newest one of an earlier minor release, if cells were
    measured at both.
    """
    found = {}
    minor = machine.axis.minor
    for place, point in enumerate(machine.points):
        earlier = [one for one in machine.points[:place] if minor(one) != minor(point)]
        if not earlier:
            continue
        before = earlier[-1]
        pair = packs.decode(documents[f"pairs/{before}/{point}"].data)
        if pair is not None:
            wanted = ("sentence", "whole", "most", "means", "reasons")
            found[point] = {"before": before, **{name: pair[name] for name in wanted}}
    return found


def _documents(machine: Machine) -> Iterator[tuple[_Documents, int]]:
    """The documents by kind, each with the size of its packs; by point, so that packs stay."""
    points = machine.points
    yield _overviews(machine), SMALL_BYTES
    yield _means(machine), SMALL_BYTES
    yield chain.from_iterable(_about_cells(machine, point) for point in points), LARGE_BYTES
    yield chain.from_iterable(_launches(machine, point) for point in points), LARGE_BYTES
    yield _pairs(machine), LARGE_BYTES
    yield _of_machine(machine), LARGE_BYTES


def _overviews(machine: Machine) -> _Documents:
    for before, point in zip(["", *machine.points], machine.points, strict=False):
        yield f"overview/{point}", overview.document(machine, point, before)


def _means(machine: Machine) -> _Documents:
    rows = [entry.row for entry in machine.entries]
    for question in dict.fromkeys(group.question for group in overview.groups(rows)):
        yield f"means/{question}", overview.means(machine, question)


def _about_cells(machine: Machine, point: str) -> _Documents:
    for bucket in _buckets(machine):
        yield f"figures/{point}/{bucket}", figures.document(machine, point, bucket)
    ends = figures.ends(machine, point)
    if ends["rows"]:
        yield f"ends/{point}", ends
    yield f"compiler/{point}", launches.compiler(machine, point)
    yield f"claims/{point}", answers.claims(machine, point)
    yield f"answers/{point}", answers.document(machine, point)


def _launches(machine: Machine, point: str) -> _Documents:
    for bucket in _buckets(machine):
        yield f"launches/{point}/{bucket}", launches.document(machine, point, bucket)


def _buckets(machine: Machine) -> list[int]:
    return sorted(set(machine.buckets.values()))


def _pairs(machine: Machine) -> _Documents:
    for number, after in enumerate(machine.points):
        for before in machine.points[:number]:
            yield f"pairs/{before}/{after}", pairs.pair(machine, before, after)


def _of_machine(machine: Machine) -> _Documents:
    yield "trust", answers.trust(machine)
    said = fastest.sentences(machine)
    for bucket in _buckets(machine):
        yield f"lines/{bucket}", figures.lines(machine, bucket, said)
