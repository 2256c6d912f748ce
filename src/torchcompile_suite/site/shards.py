"""All documents of one machine in packs, and the index that says which pack has which document.

What a machine's documents are made of seldom changes, so the packs are kept in the user's cache
(`results.cached`). A machine with a file that cannot be read is made anew each time, so that the
file is named each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import msgspec

from .. import matrix, workloads
from ..results import cached
from ..results.cached import Made
from ..results.machines import Standing
from ..results.records import Problem
from . import content, packs
from .axis import Axis
from .code import Code
from .content import Machine
from .documents import answers as of_answers
from .documents import claims as of_claims
from .documents import figures, launches, lines, means, overview, pairs, trust
from .packs import Encoded

# Documents that the first view reads are in small packs.
SMALL_BYTES = 4_000
LARGE_BYTES = 150_000


# Documents say what the whole suite knows: workloads and their tags, releases, claims, wording.


class Shards(msgspec.Struct):
    """What the site keeps of a machine.

    - ``standing``: how complete its results are.
    - ``entry``: its entry in the manifest. ``points``: its points, in words.
    - ``texts``: the packs, by name.
    - ``plain``: the documents of the newest point that pages show without a script.
    - ``upstream``: PyTorch's own commit of each point, if a measurement knows it.
    """

    standing: Standing
    entry: dict[str, Any]
    points: dict[str, dict[str, str]]
    texts: dict[str, str]
    plain: dict[str, Any]
    upstream: dict[str, str]


class _Kept(msgspec.Struct):
    """What is in the cache: nothing of a machine without a measurement that can be shown."""

    shards: Shards | None
    left_out: list[Problem]


def of_machine(folder: Path, axis: Axis, code: Code) -> tuple[Shards | None, list[Problem]]:
    """The shards of a machine's folder, and what cannot be read or shown.

    None for a machine that has nothing to show.
    """
    unread: list[Problem] = []
    make = partial(_make, folder, axis, code, unread)
    made = cached.get("site", _key(axis, code, [folder]), make)
    kept = msgspec.msgpack.decode(made, type=_Kept)
    return kept.shards, [*unread, *kept.left_out]


def of_class(hardware: str, folders: Sequence[Path], axis: Axis, code: Code) -> Shards | None:
    """The shards of the assembled history of a class; None if one machine has all cells.

    What cannot be read is named by `of_machine`, and left out here.
    """

    def make() -> Made:
        return Made(msgspec.msgpack.encode(_Kept(_of_class(hardware, folders, axis, code), [])))

    key = ["class", repr(hardware), *_key(axis, code, folders)]
    return msgspec.msgpack.decode(cached.get("site", key, make), type=_Kept).shards


def _of_class(hardware: str, folders: Sequence[Path], axis: Axis, code: Code) -> Shards | None:
    loaded = [content.load(folder, axis, code).machine for folder in folders]
    machines = [machine for machine in loaded if machine is not None]
    if not machines:
        return None
    made = content.assembled(hardware, machines, axis, code)
    return _shards(made) if made.several else None


def _key(axis: Axis, code: Code, folders: Sequence[Path]) -> list[str]:
    """What tells the shards of these folders, for `cached`."""
    identities = [part for folder in folders for part in content.identity(folder)]
    return [*_made_by(axis), *code.key, *identities]


def _made_by(axis: Axis) -> list[str]:
    """What shards depend on besides the results: the code, the axes of questions, the points."""
    axes = repr([question.axes for question in matrix.QUESTIONS.values()])
    return [cached.version(*workloads.files()), axes, *axis.key]


def _make(folder: Path, axis: Axis, code: Code, unread: list[Problem]) -> Made:
    kept = _load(folder, axis, code, unread)
    return Made(msgspec.msgpack.encode(kept), keep=not unread)


def _load(folder: Path, axis: Axis, code: Code, unread: list[Problem]) -> _Kept:
    loaded = content.load(folder, axis, code)
    unread[:] = loaded.unread
    machine = loaded.machine
    shards = None if machine is None else _shards(machine)
    return _Kept(shards, loaded.left_out)


def _shards(machine: Machine) -> Shards:
    texts: dict[str, str] = {}
    names: list[str] = []
    places: dict[str, int] = {}
    plain = _Plain(machine)
    for of_kind, most_bytes in _documents(machine):
        for pack, keys in packs.pack(plain.watch(of_kind), most_bytes):
            texts[pack.path] = pack.text
            places |= dict.fromkeys(keys, len(names))
            names.append(pack.name)
    index = {
        "packs": names,
        "documents": places,
        "buckets": machine.buckets,
        "facts": machine.facts,
    }
    ((pack, _),) = packs.pack([("index", packs.encode(index))], LARGE_BYTES)
    texts[pack.path] = pack.text
    entry = {
        "name": machine.name,
        "title": machine.title,
        "device": machine.device,
        "method": machine.method,
        "warning": machine.older_method,
        "points": machine.points,
        "index": pack.name,
        **({"machines": machine.machines} if machine.several else {}),
    }
    points = {point: machine.axis.facts(point)._asdict() for point in machine.points}
    return Shards(machine.standing, entry, points, texts, plain.documents(), _upstream(machine))


_Documents = Iterable[tuple[str, Encoded]]


def _documents(machine: Machine) -> Iterator[tuple[_Documents, int]]:
    """The documents by kind, each with the size of its packs; by point, so that packs stay."""
    points = [_of_point(machine, point) for point in machine.points]
    yield _overviews(machine), SMALL_BYTES
    yield _means(machine), SMALL_BYTES
    yield _encoded(chain.from_iterable(point.cells for point in points)), LARGE_BYTES
    yield _encoded(chain.from_iterable(point.launches for point in points)), LARGE_BYTES
    yield _pairs(machine), LARGE_BYTES
    yield _of_machine(machine), LARGE_BYTES


def _overviews(machine: Machine) -> Iterator[tuple[str, Encoded]]:
    before = ""
    for point in machine.points:
        yield f"overview/{point}", packs.encode(overview.document(machine, point, before))
        before = point


def _means(machine: Machine) -> Iterator[tuple[str, Encoded]]:
    rows = [entry.row for entry in machine.entries]
    for question in dict.fromkeys(group.question for group in means.groups(rows)):
        yield _means_key(question), packs.encode(means.document(machine, question))


def _means_key(question: str) -> str:
    return f"means/{question}"


class _OfPoint(msgspec.Struct):
    """The documents of one point by key, encoded: those about its cells, and their launches."""

    cells: list[tuple[str, str, bytes]]
    launches: list[tuple[str, str, bytes]]


def _of_point(machine: Machine, point: str) -> _OfPoint:
    """From the user's cache if the point has no new measurements.

    Its documents say nothing about other points. But the calibration loop of a launch is compared
    with that of the machine's quietest one, and buckets and names are the machine's.
    """
    key = [
        *_made_by(machine.axis),
        *(machine.name, machine.title, str(machine.method), point, machine.origins[point]),
        machine.code.digest(point),
        repr(sorted(machine.buckets.items())),
        repr(sorted(machine.quiet_s.items())),
        *sorted(name for cell, name in machine.ids.items() if name != str(cell)),
    ]

    def make() -> Made:
        return Made(msgspec.msgpack.encode(_make_of_point(machine, point)))

    return msgspec.msgpack.decode(cached.get("points", key, make), type=_OfPoint)


def _make_of_point(machine: Machine, point: str) -> _OfPoint:
    return _OfPoint(
        [(key, *packs.encode(document)) for key, document in _about_cells(machine, point)],
        [
            (f"launches/{point}/{bucket}", *packs.encode(launches.document(machine, point, bucket)))
            for bucket in sorted(set(machine.buckets.values()))
        ],
    )


def _about_cells(machine: Machine, point: str) -> Iterator[tuple[str, Any]]:
    for bucket in sorted(set(machine.buckets.values())):
        yield f"figures/{point}/{bucket}", figures.document(machine, point, bucket)
    ends = figures.ends(machine, point)
    if ends["rows"]:
        yield f"ends/{point}", ends
    yield f"compiler/{point}", launches.compiler(machine, point)
    yield f"claims/{point}", of_claims.document(machine, point)
    yield f"answers/{point}", of_answers.document(machine, point)


def _encoded(documents: Iterable[tuple[str, str, bytes]]) -> Iterator[tuple[str, Encoded]]:
    for key, digest, data in documents:
        yield key, Encoded(digest, data)


def _pairs(machine: Machine) -> Iterator[tuple[str, Encoded]]:
    couples = sorted(combinations(range(len(machine.points)), 2), key=lambda couple: couple[::-1])
    for first, second in couples:
        before, after = machine.points[first], machine.points[second]
        yield f"pairs/{before}/{after}", pairs.pair(machine, before, after).encoded


def _of_machine(machine: Machine) -> Iterator[tuple[str, Encoded]]:
    yield "trust", packs.encode(trust.document(machine))
    for bucket in sorted(set(machine.buckets.values())):
        yield f"lines/{bucket}", packs.encode(lines.document(machine, bucket))


class _Plain:
    """Takes the documents of the newest point that pages show without a script."""

    def __init__(self, machine: Machine) -> None:
        newest = machine.points[-1]
        rows = [entry.row for entry in machine.of(newest)]
        self._questions = list(dict.fromkeys(group.question for group in means.groups(rows)))
        self._keys = {
            "overview": f"overview/{newest}",
            "claims": f"claims/{newest}",
            "answers": f"answers/{newest}",
            "trust": "trust",
        }
        self._wanted = {*self._keys.values(), *map(_means_key, self._questions)}
        self._seen: dict[str, Encoded] = {}

    def watch(self, documents: _Documents) -> _Documents:
        """The same documents."""
        for key, document in documents:
            if key in self._wanted:
                self._seen[key] = document
            yield key, document

    def documents(self) -> dict[str, Any]:
        """The documents by kind, as the scripts read them; those of the means by question."""
        return {
            **{kind: packs.decode(self._seen[key].data) for kind, key in self._keys.items()},
            "means": {
                question: packs.decode(self._seen[_means_key(question)].data)
                for question in self._questions
            },
        }


def _upstream(machine: Machine) -> dict[str, str]:
    return {
        point: next(
            (
                environment.torch_git
                for measurement in machine.measurements(point)
                if (environment := measurement.environment) is not None
            ),
            "",
        )
        for point in machine.points
    }
