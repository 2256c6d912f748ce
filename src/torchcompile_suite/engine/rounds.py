"""The one loop that makes launches: rounds over what is measured, until the rule is met.

Releases that are measured one after the other differ by the drift of the machine between them. So
each round makes one launch of each, within minutes, and reverses their order: a drift that is
linear cancels in two rounds. The first round's launches are cold. One name alone is the same with
one launch a round.

A name takes part until its ratio is precise and each neighbour is told apart from it, or surely
equal to it (`change.told`), at most for `TELLING_ROUNDS`. All end with the budget.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path

import msgspec

from ..analysis import change, statistics
from ..host.files import need_free
from ..measurement import OK, TOO_BUSY, Launch, Measurement, Outcome, Status, Stopped
from . import launches
from .journal import Journal
from .launches import Refused
from .processes import Environment
from .progress import launch_line
from .series import Series
from .settings import NEEDED_FOR_CACHE_BYTES, REPEATS_VARIABLE

# The remedy of a series that cannot go on now.
AGAIN = "run the same command again: it goes on"

# After so many rounds only a ratio that is not precise asks for more. Even on a noisy machine they
# find a ratio 5.6 % worse in every try, and twelve would take twice as long (evidence/README.md).
TELLING_ROUNDS = 6

# Makes a launch: the name, and the folder of the compilers' caches, which is not empty after the
# first launch. Raises `Refused`.
Make = Callable[[str, Path], Launch]
# Gets each launch as soon as it ends, with its name.
Watch = Callable[[str, Launch], None]


def measure(
    series: Series,
    make: Make,
    known: Journal,
    watch: Watch = lambda _name, _launch: None,
    quiet_s: float | None = None,
) -> dict[str, Measurement]:
    """Measure the series, or what the journal's earlier runs have left of it.

    ``quiet_s``: seconds of the calibration loop on the quiet machine, if they are known. Returns
    the measurement of each release. Raises OSError if the journal cannot be written.
    """
    known.quiet_s = statistics.quietest((), quiet_s, known.quiet_s)
    made: Counter[str] = Counter()
    most = max(series.rounds or 0, 0 if series.having else series.most_launches)
    while wanted := [name for name in wanting(series, known) if made[name] <= most]:
        known.round += 1
        forward = known.round % 2 == 1
        for name in wanted if forward else reversed(wanted):
            _turn(series, name, make, known, watch)
        made.update(wanted)
        known.end_round()
    return results(series, known)


def _turn(series: Series, name: str, make: Make, known: Journal, watch: Watch) -> None:
    """A launch of that name that counts, or a failure."""
    for _ in range(1 + series.repeats):
        begun = time.monotonic()
        try:
            launch = make(name, known.caches / name)
        except Refused as refused:
            known.refuse(name, str(refused))
            return
        quiet_s = statistics.quietest([launch], known.quiet_s)
        before, search = known.launches[name], bool(series.having)
        launch = judged(launch, before, series.repeats, quiet_s, search=search)
        if known.name:
            launch = msgspec.structs.replace(launch, series=known.name, round=known.round)
        known.add(name, launch, round(time.monotonic() - begun, 3))
        watch(name, launch)
        if not launch.disturbed:
            return


def judged(
    launch: Launch,
    before: Sequence[Launch],
    repeats: int,
    quiet_s: float | None,
    *,
    search: bool = False,
) -> Launch:
    """The launch, marked as disturbed if a neighbour slowed it: then it does not count.

    ``before`` are the earlier launches of the cell. If ``repeats`` of them are marked, no further
    launch is: a machine that is always disturbed must come to an end. If others take its processors
    by then, there is no number, except in a ``search``: it compares launches that are near in time,
    and a value of a busy hour is better than none. If only the calibration loop is slow, the launch
    counts: a host can be in that state for hours, and its figures say so. ``quiet_s`` is the time
    of the loop on the quiet machine, in seconds; None if it is not known. With ``repeats`` of 0
    every launch counts.
    """
    reason = statistics.disturbed(launch, quiet_s)
    if not reason or not repeats or not launch.outcome.ok:
        return launch
    repeated = len(before) - len(statistics.undisturbed(before))
    if repeated < repeats:
        return msgspec.structs.replace(launch, disturbed=reason)
    if not search and (taken := statistics.taken(launch)):
        text = (
            f"{TOO_BUSY}: {taken} in launch {len(before) + 1} ({launch_line(launch)}), after "
            f"{repeated} disturbed one{'s' * (repeated != 1)}; "
            "torchcompile-suite doctor names what is busy, and "
            f"{REPEATS_VARIABLE}=0 measures all the same"
        )
        return msgspec.structs.replace(launch, outcome=Outcome(Status.UNSETTLED, text))
    return launch


def wanting(series: Series, known: Journal) -> list[str]:
    """What needs another round, in order; empty at the end of the series."""
    present = [name for name in series.releases if not known.failed(name)]
    if series.rounds is not None:
        return [name for name in present if _open(series, known, name, series.rounds)]
    if any(known.count(name) < statistics.FIRST_LOOK for name in present):
        return present
    taken_s = sum(known.taken_s[name] for name in series.releases)
    if taken_s >= series.budget_s * len(series.releases):
        return []
    open_ = {
        name for name in present if not statistics.precise(known.launches[name], series.precision)
    }
    if known.round < TELLING_ROUNDS:
        for before, after in pairwise(present):
            if not change.told(series.cell, known.launches[before], known.launches[after]):
                open_ |= {before, after}
    return [name for name in present if name in open_ and known.count(name) < series.most_launches]


def _open(series: Series, known: Journal, name: str, rounds: int) -> bool:
    """Whether a name still needs launches for its ``rounds``.

    Launches elsewhere on the host are made up for. Where fewer than `statistics.FIRST_LOOK` are
    wanted, each counts, wherever it was made.
    """
    launches = known.launches[name]
    if series.having:
        return len(change.values(series.having, launches)) < rounds
    made = known.count(name)
    if rounds < statistics.FIRST_LOOK or made >= series.most_launches:
        return made < rounds
    others = chain.from_iterable(known.launches[other] for other in series.releases)
    return statistics.at_best_place(launches, others) < rounds


def in_turns(
    series: Series,
    environments: Mapping[str, Environment],
    known: Journal,
    watch: Watch = lambda _name, _launch: None,
    quiet_s: float | None = None,
    again: str = AGAIN,
) -> dict[str, Measurement]:
    """Measure a series, or what is left of it, with real launches.

    ``environments``: that of each release. ``quiet_s``: as in `measure`. ``again``: what the user
    does when there is room. Raises SuiteError if the disk has none for compiled code, and OSError.
    """

    def make(release: str, cache: Path) -> Launch:
        # A disk that fills up is the fault of no release.
        need_free(known.caches, NEEDED_FOR_CACHE_BYTES, f"compiled code ({known.caches})", again)
        return launches.of_series(environments[release], series, cache)

    known.caches.mkdir(parents=True, exist_ok=True)
    return measure(series, make, known, watch, quiet_s)


def results(series: Series, known: Journal) -> dict[str, Measurement]:
    """The measurement of each release that has launches, complete or not, or was refused.

    A release is left out if all of its launches were disturbed. This happens if a run was stopped
    before a launch was repeated.
    """
    open_ = set(wanting(series, known))
    made = {}
    for name in series.releases:
        found = known.launches[name]
        refused = known.refused.get(name)
        outcome = Outcome(Status.CRASH, refused) if refused else outcome_of(found)
        stopped: Stopped = ""
        if outcome.ok:
            # Ctrl-C does not depend on the results, so what it ended has the interval of a fixed
            # number of launches.
            if series.rounds is not None or name in open_:
                stopped = "fixed"
            else:
                precise = statistics.precise(known.launches[name], series.precision)
                stopped = "precise" if precise else "budget"
        if statistics.undisturbed(found) or refused:
            made[name] = Measurement(
                cell=series.cell,
                outcome=outcome,
                launches=found,
                started_at=known.started_at,
                duration_s=round(known.taken_s[name], 3),
                stopped=stopped,
            )
    return made


def outcome_of(launches: Sequence[Launch]) -> Outcome:
    """The outcome of the first failed launch; ok if every launch is ok."""
    for number, launch in enumerate(launches, 1):
        if not launch.outcome.ok:
            named = number == 1 or launch.outcome.reason.startswith(TOO_BUSY)
            where = "" if named else f"launch {number}: "
            return Outcome(launch.outcome.status, where + launch.outcome.reason)
    return OK if launches else Outcome(Status.CRASH, "no launch was made")
