"""What a block of code compiled, as counts; and which parts of it a harmless edit may change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

from msgspec import Struct, field

from ..fields import Count, Text
from ..host.places import in_packages

_NUMBER = re.compile(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b")
# A mismatch is the same one whatever the input is called.
_MISMATCH = re.compile(r"(dispatch key set|requires_grad|\w+) mismatch( at index \d+)?")
# ``self.cache[0].x``, and not the name of a function that is called.
_NAME = re.compile(r"\b[A-Za-z_][\w.]*(\[[^\]]*\][\w.]*)*(?![\w(])")
_WORDS = frozenset(("not", "is", "in", "and", "or", "None", "True", "False"))


class Site(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that the compiler did, why, and where.

    - ``id``: PyTorch's id of a graph break; empty in a release without ids.
    - ``where``: the file, relative to the contract, and the function. ``line``: in that file, from
      1; 0 if it is not known. ``code``: the line itself. Neither is compared or kept.
    """

    reason: Text = ""
    where: Text = ""
    id: Text = ""
    line: int = 0
    code: Text = ""

    @property
    def key(self) -> str:
        """What is the same before and after an edit that changes names and places only."""
        return self.id or _blank(self.reason.partition(": ")[0])

    @property
    def guard(self) -> str:
        """The kind of the guard that failed, without names and values."""
        if found := _MISMATCH.search(self.reason):
            return found[0]
        return _NUMBER.sub("#", _NAME.sub(_unnamed, self.reason))

    def place(self) -> str:
        """``file.py:line in function``, as far as it is known."""
        file, _, function = self.where.partition(", ")
        at = f"{file}:{self.line}" if self.line else file
        return f"{at} in {function}" if function else at


def _unnamed(found: re.Match[str]) -> str:
    return found[0] if found[0] in _WORDS else "_"


def _blank(text: str) -> str:
    return _NUMBER.sub("#", re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*/\S+", "_", text))


class Counts(Struct, frozen=True, forbid_unknown_fields=True):
    """What a block of code compiled.

    - ``graphs``: that Dynamo captured. ``graph_breaks``: each place once. ``left_to_eager``: code
      that Dynamo gave up without a graph break. ``recompiles``: one for each guard that failed.
    - ``guards``: conditions that Dynamo checks before it reuses the graphs.
    - ``kernels``: that Inductor generated. ``launches``: that one call of each graph makes, calls
      of libraries included. ``bytes``: that these read and write, as Inductor's scheduler counts.
      ``operators``: ATen operators in Inductor's graphs and the dtypes of their results, without
      views. All None with a backend that generates no code.
    - ``cudagraph_skips``: why a graph has no CUDA graph, in a mode that wants them.

    Not kept in the contract: ``captured`` has the functions that were captured, ``lines`` the lines
    of each operator, and ``largest`` the line whose results have the most elements.
    """

    graphs: Count
    guards: Count = 0
    graph_breaks: list[Site] = field(default_factory=list)
    left_to_eager: list[Site] = field(default_factory=list)
    recompiles: list[Site] = field(default_factory=list)
    cudagraph_skips: list[Site] = field(default_factory=list)
    kernels: Count | None = None
    launches: Count | None = None
    bytes: Count | None = None
    operators: dict[str, Count] | None = None
    captured: list[Site] = field(default_factory=list)
    lines: dict[str, list[Site]] = field(default_factory=dict)
    largest: Site | None = None

    def same(self, other: Counts) -> bool:
        """Whether nothing differs but the number of guards."""
        return (
            all(getattr(self, name) == getattr(other, name) for name in NUMBERS)
            and self.operators == other.operators
            and keys(self.graph_breaks) == keys(other.graph_breaks)
            and keys(self.left_to_eager) == keys(other.left_to_eager)
            and keys(self.cudagraph_skips) == keys(other.cudagraph_skips)
            and guards(self.recompiles) == guards(other.recompiles)
        )

    def number(self, name: str) -> int | None:
        """The count of that name; of a list its length. None if it is not known."""
        value: list[object] | int | None = getattr(self, name)
        return len(value) if isinstance(value, list) else value


NUMBERS = ("graphs", "kernels", "launches", "bytes")


def keys(sites: Iterable[Site]) -> Counter[str]:
    """How often each break or skip comes."""
    return Counter(site.key for site in sites)


def guards(sites: Iterable[Site]) -> Counter[str]:
    """How often each kind of guard failed."""
    return Counter(site.guard for site in sites)


class Root:
    """The folder that places are relative to: that of the contract."""

    def __init__(self, folder: str, torch_folder: str) -> None:
        """Both are absolute paths. Frames of torch's own files are no places of the user's."""
        self._folder = PurePath(folder)
        self._torch = f"{torch_folder}/"

    def innermost(self, files: Iterable[str]) -> int | None:
        """Which of the files, outermost first, is the user's last; else a package's last; else
        None.
        """
        known = [(at, file) for at, file in enumerate(files) if not file.startswith(self._torch)]
        own = [at for at, file in known if self._owns(file)]
        return (own or [at for at, _ in known] or [None])[-1]  # type: ignore[list-item]

    def _owns(self, file: str) -> bool:
        return PurePath(file).is_relative_to(self._folder) and not in_packages(file)

    def name(self, file: str) -> str:
        """The file without what differs from machine to machine."""
        if self._owns(file):
            return PurePath(file).relative_to(self._folder).as_posix()
        return in_packages(file) or PurePath(file).name
