"""The pages of releases: what each of them changed, and the list of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..analysis.change import MARGIN, QUANTITIES, Difference
from ..analysis.summary import version_key
from ..presentation.wording import plural
from ..releases import catalogue
from ..releases.catalogue import Release, minor
from ..results.records import COMMIT_DIGITS
from .axis import label
from .sections import Row, Section, Table, Value, address, ratio, rows, sheet, table
from .shards import Shards
from .stories import Story


class ReleasePage(NamedTuple):
    """What a release changed.

    - ``link``: the text of links to it.
    - ``machine``, ``before``, ``after``: the two points that the picture is of, and ``whole`` its
      figures as a table.
    - ``links``: text and address of each.
    """

    file: str
    title: str
    link: str
    machine: str
    before: str
    after: str
    whole: Table
    sections: list[Section]
    stories: list[Story]
    links: list[tuple[str, str]]


def changed(
    machines: Sequence[Shards],
    code: Mapping[str, Row],
    told: Sequence[Story],
    labels: Mapping[str, str],
) -> list[ReleasePage]:
    """A page for each minor release that has one before it, on the machine that has most of them.

    It is about the newest patch that this machine has.
    ``code``: the documents of generated code. ``labels``: the names of points.
    """
    # A stranger's point may be any text, and becomes the name of a file.
    known = {release.version for release in catalogue.read()}
    newest: dict[str, tuple[str, Row, Row]] = {}
    for shards in reversed(machines):
        steps = shards.plain["steps"]
        for point in sorted(known & steps.keys(), key=version_key):
            newest[minor(point)] = point, shards.entry, steps[point]
    made = []
    for point, machine, step in sorted(newest.values(), key=lambda one: version_key(one[0])):
        name = machine["name"]
        before, after = labels[step["before"]], labels[point]
        pair = address("compare.html", machine=name, before=step["before"], after=point)
        models = address("models.html", machine=name, at=point)
        made.append(
            ReleasePage(
                _file(point),
                f"PyTorch {after.removeprefix('v')}: what it changed for torch.compile",
                f"What changed for torch.compile from {before} to {after}",
                *(name, step["before"], point),
                sheet(f"Relative to {before}; above 1 is slower, or more memory.", step["whole"]),
                [*_step(step, machine["title"]), *_why(machines, point), *_code_of(code, point)],
                _about(told, point),
                [
                    (f"Every figure of {before} and {after}", pair),
                    (f"All models with {after}", models),
                ],
            )
        )
    return made


def _file(version: str) -> str:
    return f"release-{minor(version)}.html"


def _about(told: Iterable[Story], version: str) -> list[Story]:
    return [one for one in told if minor(version) in one.releases]


def _step(step: Row, title: str) -> Iterable[Section]:
    """What a release changed: what follows for users, what matters most, and how it is known.

    ``title``: that of the machine.
    """
    means = rows(step["means"])
    advice = list(_upgrading(means))
    none = (
        f"Of what was compared, nothing is on average surely worse by more than {_WORTH - 1:.0%}."
    )
    apart = [] if {row["figure"] for row in means} & _DRIFTING else [_APART]
    told = [*_calls(means), *(advice or [none] * bool(means)), *apart]
    yield Section("When you upgrade", [f"Measured on {title}.", *told])
    if step["most"]["rows"]:
        yield Section("What matters most", [], [sheet("The largest changes.", step["most"])])
    yield Section("How it was compared", [step["sentence"]])


def _why(machines: Iterable[Shards], point: str) -> Iterable[Section]:
    """Why calls changed, of the cells that any machine has divided."""
    reasons = dict.fromkeys(
        f"{row['cell']}: {row['says']}"
        for machine in machines
        if point in machine.plain["steps"]
        for row in rows(machine.plain["steps"][point]["reasons"])
    )
    if reasons:
        yield Section("Why", list(reasons))


# Figure -> what a user does where it is surely worse by more than `_WORTH`.
_WORTH = 1 + MARGIN
_REMEDIES = {
    "cold compile": "a first start takes {} times as long. Keep the cache between runs "
    "(TORCHINDUCTOR_CACHE_DIR).",
    "warm compile": "a start with a full cache takes {} times as long.",
    "memory": "a compiled process needs {} times the memory.",
    "compiled": "compiled calls take {} times as long. Measure your model in both releases before "
    "you upgrade (torchcompile-suite try MODEL --release NAME).",
    "eager": "eager calls take {} times as long.",
    "time ratio": "the ratio of a compiled call to eager is {} times as large.",
}
_DRIFTING = {name for name, quantity in QUANTITIES.items() if quantity.drifts}
_APART = (
    "Times and compile costs of the two were not compared: they were not measured in turns "
    "(torchcompile-suite history)."
)


def _calls(means: Iterable[Row]) -> Iterable[str]:
    """The first answer of the page: what became of compiled calls, where no remedy says it."""
    for row in means:
        if row["figure"] == "compiled" and row["mean"] is not None and not _is_worse(row):
            mean = ratio(row, "mean")
            same = row["judged"] == Difference.SAME.value
            within = f"are as fast as before, within {MARGIN:.0%} ({mean})"
            yield f"On average compiled calls {within if same else f'take {mean} times as long'}."


def _is_worse(row: Row) -> bool:
    return row["mean_low"] is not None and row["mean_low"] > _WORTH


def _upgrading(means: Iterable[Row]) -> Iterable[str]:
    for row in means:
        remedy = _REMEDIES.get(row["figure"])
        if remedy and _is_worse(row):
            yield f"On average {remedy.format(ratio(row, 'mean'))}"


def _code_of(code: Mapping[str, Row], point: str) -> Iterable[Section]:
    """What of the code for targets the release changed: the counts that became fewer or more."""
    for key, document in code.items():
        lines = []
        for group in document.get("groups", ()):
            for row in rows(group["by_point"]):
                counted = [f"{name} in {row[name]}" for name in row if ": " in name and row[name]]
                if older := row["changed_since_older"]:
                    counted.append(
                        f"any count in {older} of {plural(row['with_an_older'], 'other cell')},"
                        " since an older release: the one before has no code of them"
                    )
                if row["point"] == point and counted:
                    what = f"{group['phase']}, mode {group['mode']}"
                    lines.append([what, str(row["compared"]), "; ".join(counted)])
        if lines:
            columns = ["", "cells", "counts that changed"]
            made = table("In how many cells a count changed.", columns, lines, ["cells"])
            yield Section(f"Generated for {key.partition('/')[2]}", [], [made])


def listed(
    release: Release,
    commit: str,
    machines: Sequence[Shards],
    told: Sequence[Story],
    written: Mapping[str, ReleasePage],
) -> dict[str, Any]:
    """A release on the page that ASV's commit links lead to. ``id``: digits of its commit.

    ``written``: the pages that `changed` makes, by file.
    """
    name, page = label(release.version), written.get(_file(release.version))
    facts = [
        ("version", release.version),
        ("uploaded", release.date.date().isoformat()),
        ("upstream tag", release.tag),
        ("upstream commit", release.git_version or "not recorded"),
        ("ledger commit", commit),
        ("Pythons with wheels", ", ".join(release.pythons)),
    ]
    measured = [
        (
            "measured on",
            Value(one["title"], address("index.html", machine=one["name"], at=release.version)),
        )
        for one in (made.entry for made in machines)
        if release.version in one["points"]
    ]
    return {
        "id": commit[:COMMIT_DIGITS],
        "label": name,
        "table": table(f"PyTorch {name}", ["property", "value"], [*facts, *measured]),
        "page": page.file if page else "",
        "changed": page.link if page else "",
        "stories": _about(told, release.version),
        "lock": release.lock.read_text() if release.lock.is_file() else "",
    }
