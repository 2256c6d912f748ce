"""Counts what a block of code compiles in this process, with the compiler as the user has it.

The block may compile anything: a module, functions, or code that calls torch.compile by itself.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis.remedies import guard_of
from ..compiled import GraphBreak
from ..errors import SuiteError
from .counts import Counts, Root, Site

if TYPE_CHECKING:
    from ..launch.inspect.located import Frame, Operator

_ID = re.compile(r" \((GB\d+), \S+\)$")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+?)_at_\d+")
# A guard may have an object's address, which differs in each process.
_ADDRESS = re.compile(r"(___check_(?:obj|type)_id\(.*?), \d+\)")
# What newer releases add to a guard: the code that needs it, and where that is.
_ORIGIN = re.compile(r"\s+# (?P<code>.*)  # (?P<file>\S+):(?P<line>\d+) in (?P<function>[\w<>]+)")
# ``self.calls`` or ``tokens.size``, which the source has in the same words.
_ATTRIBUTE = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_WHERE = re.compile(r" \((?P<file>[^()]+\.py):(?P<line>\d+)\)$")
_busy = False


class Counting:
    """A block of code that is counted. After it, ``counts`` has the counts, and ``device`` the kind
    of the device that the compiled code is for.
    """

    counts = Counts(0)
    device = "cpu"


@contextmanager
def counting(folder: Path) -> Iterator[Counting]:
    """Count what the block compiles. Places are relative to ``folder``.

    Everything that was captured before is dropped, so that the counts do not depend on it. What the
    block compiles is dropped at its end: Inductor writes the code, and on a CPU does not build it.
    Raises SuiteError inside another such block, and whatever the block raises.
    """
    global _busy
    if _busy:
        raise SuiteError("a block that is counted is in another one; count one after the other")
    import torch

    from ..launch.inspect import dynamo, inductor, located

    counted = Counting()
    _busy = True
    try:
        dynamo.reset()
        with (
            located.everything_compiled(),
            inductor.watch_cudagraph_skips() as skips,
            dynamo.watch_recompiles() as recompiles,
            inductor.watch_generation() as generated,
            located.watch_operators() as operators,
            located.building_nothing(),
            dynamo.GivenUp() as given_up,
        ):
            yield counted
            places = _Places(folder, str(Path(torch.__file__).parent), located.captured())
            counted.counts = Counts(
                graphs=dynamo.captures(),
                guards=dynamo.guards(),
                graph_breaks=places.breaks(located.breaks()),
                left_to_eager=places.left_to_eager(
                    given_up.frames(),
                    [(why, located.stack_of(stack)) for why, stack in given_up.untraced],
                ),
                recompiles=[places.guard(each) for each in recompiles],
                cudagraph_skips=[places.skip(text) for text in dict.fromkeys(skips)],
                captured=places.captured,
                **_of_code(generated, operators, places),
            )
            devices = {each.device for each in operators} - {"cpu", "meta"}
            counted.device = "+".join(sorted(devices)) or counted.device
    finally:
        # What was compiled here is no code to be timed.
        dynamo.reset()
        torch._dynamo.utils.set_compilation_metrics_limit(
            torch._dynamo.utils.DEFAULT_COMPILATION_METRICS_LIMIT
        )
        _busy = False


def _of_code(generated: Any, operators: list[Operator], places: _Places) -> dict[str, Any]:
    """What is known of the generated code; nothing if a backend generated none."""
    if not operators and not generated.nodes_after:
        return {}
    lines: dict[str, dict[Site, None]] = {}
    elements: Counter[Site] = Counter()
    for each in operators:
        site = places.site(each.stack)
        lines.setdefault(f"{each.name} {each.dtype}", {})[site] = None
        elements[site] += each.elements
    located = [site for site, _ in elements.most_common() if site.line]
    return {
        "kernels": generated.kernels,
        "launches": generated.known()[0].get("launches"),
        "bytes": generated.bytes_after,
        "operators": dict(sorted(Counter(f"{e.name} {e.dtype}" for e in operators).items())),
        "lines": {name: [site for site in sites if site.line] for name, sites in lines.items()},
        "largest": located[0] if located else None,
    }


class _Places:
    """Turns the compiler's places into those of the user's files."""

    def __init__(self, folder: Path, torch_folder: str, captured: Sequence[Frame]) -> None:
        self._root = Root(str(folder.resolve()), torch_folder)
        # The suite names a function by the name of its file and its first line.
        self._known = {f"{Path(each.file).name}:{each.line}": each for each in captured}
        self._files = [each.file for each in captured]
        self.captured = [self.site([each]) for each in captured]

    def site(self, stack: Sequence[Frame], reason: str = "", identity: str = "") -> Site:
        """The innermost place that is the user's."""
        at = self._root.innermost(each.file for each in stack)
        if at is None:
            return Site(reason, id=identity)
        file, line, function = stack[at]
        function = _RESUMED.sub(r"\1", function)
        where = self._root.name(file) + (f", {function}" if function else "")
        code = linecache.getline(file, line).strip()[:200] if line else ""
        return Site(reason, where, identity, line, code)

    def breaks(self, found: Iterable[tuple[GraphBreak, list[Frame]]]) -> list[Site]:
        """Each graph break once."""
        sites = []
        for graph_break, stack in found:
            identity = _ID.search(graph_break.reason)
            reason = _ID.sub("", graph_break.reason)
            sites.append(self.site(stack, reason, identity[1] if identity else ""))
        return list(dict.fromkeys(sites))

    def left_to_eager(
        self, given_up: Iterable[GraphBreak], untraced: Sequence[tuple[str, list[Frame]]]
    ) -> list[Site]:
        """Each place once. ``untraced``: reasons with their stacks, innermost last."""
        sites: list[Site] = []
        for each in given_up:
            stacks = [stack for why, stack in untraced if why and each.reason.endswith(why)]
            sites += self.breaks((each, stack) for stack in stacks) or [self.beginning(each)]
        return list(dict.fromkeys(sites))

    def beginning(self, given_up: GraphBreak) -> Site:
        """A function that is known by its first line."""
        identity = _ID.search(given_up.reason)
        frame = self._known.get(given_up.where)
        site = self.site([frame] if frame else [], _ID.sub("", given_up.reason))
        where, _, line = given_up.where.partition(":")
        return Site(
            site.reason,
            site.where or where,
            identity[1] if identity else "",
            site.line or int(line or 0),
            site.code,
        )

    def guard(self, recompile: GraphBreak) -> Site:
        """A guard that failed, at the code that needs it, or else at the function."""
        text = _ADDRESS.sub(r"\1, #)", guard_of(recompile.reason))
        site = self.beginning(GraphBreak(text, recompile.where))
        origin = _ORIGIN.search(recompile.reason)
        file = self._file(origin["file"]) if origin else None
        if origin is None or file is None:
            return self._used(site, self._known.get(recompile.where), text)
        function = _RESUMED.sub(r"\1", origin["function"])
        where = f"{self._root.name(file)}, {function}"
        return Site(text, where, "", int(origin["line"]), origin["code"].strip()[:200])

    def _file(self, named: str) -> str | None:
        """The captured file of that name, of which torch has cut the beginning; None if there is
        none, or if several have it.
        """
        name = Path(named).name
        found = {each for each in self._files if Path(each).name == name and each.endswith(named)}
        return found.pop() if len(found) == 1 else None

    def _used(self, site: Site, function: Frame | None, guard: str) -> Site:
        """The function's first line that has the attribute or call of the guard."""
        names = _ATTRIBUTE.findall(re.sub(r"L\['(\w+)'\]", r"\1", guard))
        if function is None or not names:
            return site
        lines = linecache.getlines(function.file)[function.line - 1 :]
        body = inspect.getblock(lines)
        for number, code in enumerate(body[1:], function.line + 1):
            if any(re.search(rf"\b{re.escape(name)}\b", code) for name in names):
                return Site(site.reason, site.where, site.id, number, code.strip()[:200])
        return site

    def skip(self, text: str) -> Site:
        """Why a graph has no CUDA graph."""
        found = _WHERE.search(text)
        if found is None:
            return Site(text)
        file = self._file(found["file"]) or found["file"]
        return Site(_WHERE.sub("", text), self._root.name(file), "", int(found["line"]))
