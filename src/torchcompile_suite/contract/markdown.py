"""What a check found, in Markdown: for the summary of a CI job, or a comment."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from ..host.files import write_or_say
from ..presentation.wording import count, plural, printable
from .counts import Counts

# A comment of the pull request that begins with it is this check's (docs/contract.md).
MARK = "<!-- compile-contract -->"
# GitHub takes 65,536 characters in a comment.
_MOST_CHARACTERS = 60_000
# The counts that a release of torch may add to or remove from, and what one of them is called.
_CALLED = {
    "graph_breaks": "graph break",
    "left_to_eager": "uncaptured function",
    "recompiles": "recompile",
    "cudagraph_skips": "skipped CUDA graph",
    "graphs": "graph",
    "kernels": "kernel",
    "launches": "launch",
}
_SHOWN = (*_CALLED, "bytes")


class Checked(NamedTuple):
    """A model of the contract, counted with one release.

    ``torch``: the minor release, or what was asked for if nothing was counted: then ``counts`` is
    None. ``fault``: what differs from the contract, or why nothing was counted; empty if all is
    well.
    """

    model: str
    call: str
    device: str
    torch: str
    counts: Counts | None
    fault: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Which ones are of the same entry."""
        return self.model, self.call, self.device


def write(path: Path, found: Sequence[Checked]) -> None:
    """Write the summary. Raises SuiteError."""
    write_or_say(path, markdown(found).encode())


def markdown(found: Sequence[Checked]) -> str:
    """A headline, what one release does that another does not, a table, and each fault that still
    fits a comment.
    """
    from ..presentation import terminal
    from ..presentation.sheets import Sheet

    broken = [each for each in found if each.fault]
    kept = f"broken: {len(broken)} of {len(found)}" if broken else f"kept: {len(found)}"
    columns = {name: [_value(each.counts, name) for each in found] for name in _SHOWN}
    # Columns that are 0 everywhere say nothing, as long as a fault does not say otherwise.
    shown = {
        name: values
        for name, values in columns.items()
        if name in ("graphs", "graph_breaks", "recompiles") or set(values) - {"0", "-"}
    }
    lines = [
        [*each.key, each.torch, *texts, "broken" if each.fault else "kept"]
        for each, *texts in zip(found, *shown.values(), strict=True)
    ]
    names = [name.replace("_", " ") for name in shown]
    sheet = Sheet(["model", "call", "device", "torch", *names, "contract"], frozenset(names), lines)
    parts = [
        f"{MARK}\n### torch.compile contract {kept}",
        "\n".join(f"- {line}" for line in between_releases(found)),
        terminal.markdown(sheet),
    ]
    text = "\n\n".join(filter(None, parts))
    for number, each in enumerate(broken):
        details = _details(each)
        if len(text) + len(details) > _MOST_CHARACTERS:
            text += f"\n\nAnd {len(broken) - number} more: see the output of the check."
            break
        text += f"\n\n{details}"
    return f"{text}\n"


def _value(counts: Counts | None, name: str) -> str:
    return count(None if counts is None else counts.number(name))


def _details(each: Checked) -> str:
    # Nothing in it may end the block.
    text = "\n".join(printable(line).replace("`", "'") for line in each.fault.splitlines())
    of = html.escape(printable(f"{each.model} ({each.call}, {each.device}), torch {each.torch}"))
    return f"<details><summary>{of}</summary>\n\n```text\n{text}\n```\n\n</details>"


def between_releases(found: Sequence[Checked]) -> Iterator[str]:
    """What each release adds or removes against the older one that was counted with it."""
    for key in dict.fromkeys(each.key for each in found):
        known = {each.torch: each.counts for each in found if each.key == key and each.counts}
        releases = sorted(known, key=Version)
        name, call, device = (printable(part).replace("`", "'") for part in key)
        for before, after in pairwise(releases):
            one, other = known[before], known[after]
            changes = ", ".join(_changes(one, other))
            rest = [] if one.same(other) else ["bytes, operators, kinds or what is known"]
            if one.guards != other.guards:
                rest.append(f"guards from {one.guards} to {other.guards}")
            if changes:
                verb = f"{changes} in"
            elif rest:
                verb = f"changes {', '.join(rest)}, and no other count, of"
            else:
                verb = "changes no count of"
            yield f"torch {after} {verb} `{name}` ({call}, {device}; before: torch {before})"


def _changes(before: Counts, after: Counts) -> Iterator[str]:
    for verb, sign in (("adds", 1), ("removes", -1)):
        parts = []
        for name, called in _CALLED.items():
            one, other = before.number(name), after.number(name)
            if one is not None and other is not None and (more := sign * (other - one)) > 0:
                parts.append(plural(more, called))
        if parts:
            yield f"{verb} {', '.join(parts)}"
