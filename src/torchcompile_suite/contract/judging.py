"""What changed against the contract, where in the user's source, and what helps, in few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..analysis.remedies import Kind, remedy
from .counts import NUMBERS, Counts, Site, guards, keys

# The number of guards depends on how a module is built of others, not only on what it computes. So
# it may grow by this factor, and a little, before it is a change.
GUARD_GROWTH = 1.5
FEW_GUARDS = 10

MOST_LINES = 20
_WIDTH = 200


class Change(NamedTuple):
    """What changed, in one line; then where and what helps, in lines of their own."""

    what: str
    details: tuple[str, ...] = ()


def changes(before: Counts, now: Counts) -> list[Change]:
    """What differs between the contract and now, causes first; empty if nothing does."""
    found = [
        *_sites("graph break", "graph-break", before.graph_breaks, now.graph_breaks),
        *_sites("left to eager", "graph-break", before.left_to_eager, now.left_to_eager),
        *_sites("recompile", "recompile", before.recompiles, now.recompiles),
        *_sites("no CUDA graph", "cuda-graph", before.cudagraph_skips, now.cudagraph_skips),
        *_operators(before, now),
    ]
    explained = bool(found)
    for name in NUMBERS:
        one, other = getattr(before, name), getattr(now, name)
        if one != other:
            details = () if explained else _where(name, now)
            found.append(Change(f"{name}: {_number(one)} -> {_number(other)}", details))
    if now.guards > GUARD_GROWTH * before.guards + FEW_GUARDS:
        details = () if explained else _where("graphs", now)
        found.append(Change(f"guards: {before.guards} -> {now.guards}", details))
    return found


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _where(name: str, now: Counts) -> tuple[str, ...]:
    """Where to look, if nothing else says where the change is."""
    if name == "graphs":
        sites = list(dict.fromkeys(site for site in now.captured if site.line))
        return tuple(f"captured: {site.place()}" for site in sites[:3])
    if now.largest is not None:
        return (f"the largest results are of {_line(now.largest)}",)
    return ()


def _line(site: Site) -> str:
    return f"{site.place()}: {site.code}" if site.code else site.place()


def _sites(name: str, kind: Kind, before: Sequence[Site], now: Sequence[Site]) -> Iterator[Change]:
    """What came, with its place and remedy, and what went."""
    count: Callable[[Iterable[Site]], Counter[str]] = guards if kind == "recompile" else keys
    came, went = count(now) - count(before), count(before) - count(now)
    for key, more in came.items():
        alike = [site for site in now if next(iter(count([site]))) == key]
        # Those that the contract does not have at that place come first.
        known = {site.where for site in before if next(iter(count([site]))) == key}
        alike.sort(key=lambda site: site.where in known)
        site = alike[0]
        times = f" ({more} times)" if more > 1 else ""
        label = f"{site.id} " if site.id else ""
        places = list(dict.fromkeys(_line(each) for each in alike[:more] if each.where))
        details = [f"at {place}" for place in places[:2]]
        yield Change(
            f"+ {name}{times}: {label}{site.reason}",
            (*details, f"remedy: {remedy(kind, site.reason)}"),
        )
    for key, less in went.items():
        site = next(site for site in before if next(iter(count([site]))) == key)
        times = f" ({less} times)" if less > 1 else ""
        yield Change(
            f"- {name}{times}: {site.id or site.reason}{f' in {site.where}' * bool(site.where)}"
        )


def _operators(before: Counts, now: Counts) -> Iterator[Change]:
    """Operators that came or went. What went has no line now."""
    if before.operators is None or now.operators is None:
        return
    if guards(now.recompiles) != guards(before.recompiles):
        # Each graph more or less has all of them.
        one, other = (sum(counts.operators.values()) for counts in (before, now))  # type: ignore[union-attr]
        if one != other:
            yield Change(f"operators: {one} -> {other}")
        return
    names = sorted({*before.operators, *now.operators})
    pairs = {name: (before.operators.get(name, 0), now.operators.get(name, 0)) for name in names}
    changed = [(name, pair) for name, pair in pairs.items() if pair[0] != pair[1]]
    # What came has a line.
    changed.sort(key=lambda each: each[1][0] > each[1][1])
    for name, (one, other) in changed:
        lines = now.lines.get(name, []) if other > one else []
        details = [f"at {_line(site)}" for site in lines[:2]]
        if others := lines[2:]:
            # The contract keeps no lines, so any of them may be the new one.
            details.append(f"or at {', '.join(site.place() for site in others)}")
        yield Change(f"operator {name}: {one} -> {other}", tuple(details))


def beyond(counts: Counts, limits: Mapping[str, object]) -> list[Change]:
    """Which limits of the mark do not hold. ``limits``: those of `LIMITS` that are set."""
    found = []
    if limits.get("fullgraph"):
        if not counts.graphs:
            found.append(Change("graphs: 0, and fullgraph=True: nothing was compiled"))
        for name, sites in (
            ("graph break", counts.graph_breaks),
            ("left to eager", counts.left_to_eager),
        ):
            found += list(_sites(name, "graph-break", [], sites))
    for limit, name in LIMITS.items():
        most = limits.get(limit)
        value = getattr(counts, name)
        number = counts.number(name)
        if isinstance(most, int | float) and number is None:
            found.append(Change(f"{name}: not known of this code, and {limit}={most}"))
        elif isinstance(most, int | float) and number is not None and number > most:
            kind = _KINDS.get(name, "graph-break")
            found.append(Change(f"{name.replace('_', ' ')}: {number}, and {limit}={most}"))
            if isinstance(value, list) and not (limits.get("fullgraph") and name == "graph_breaks"):
                found += list(_sites(name.rstrip("s").replace("_", " "), kind, [], value))
    return found


_KINDS: dict[str, Kind] = {"recompiles": "recompile", "cudagraph_skips": "cuda-graph"}

# Keyword of the mark -> what it limits.
LIMITS = {
    f"max_{name}": name
    for name in (
        *("graphs", "graph_breaks", "recompiles", "guards"),
        *("kernels", "launches", "bytes", "cudagraph_skips"),
    )
}


def told(head: str, found: Sequence[Change], foot: str) -> str:
    """The changes in at most `MOST_LINES` lines, of which the last is ``foot``."""
    room = MOST_LINES - 2
    lines: list[str] = []
    for number, change in enumerate(found):
        block = [f"  {change.what}", *(f"      {detail}" for detail in change.details)]
        left = len(found) - number
        if len(lines) + len(block) > room - (left > 1):
            lines.append(f"  and {left} more")
            break
        lines += block
    return "\n".join(_cut(line) for line in (head, *lines, foot))


def _cut(line: str) -> str:
    flat = " ".join(line.split("\n"))
    return flat if len(flat) <= _WIDTH else f"{flat[: _WIDTH - 3]}..."
