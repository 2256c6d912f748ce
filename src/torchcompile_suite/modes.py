"""Eager and the modes of ``torch.compile``, with the release in which each of them appeared."""

from __future__ import annotations

from typing import NamedTuple

EAGER = "eager"


class Mode(NamedTuple):
    """One value of the ``mode`` axis.

    ``since`` is the first PyTorch release, as (major, minor), that accepts it.
    """

    name: str
    since: tuple[int, int] = (2, 0)

    @property
    def compiles(self) -> bool:
        """Whether the mode uses ``torch.compile``."""
        return self.name != EAGER


# The order of ASV's axis: only append, never reorder. The names are torch's.
MODES = {
    mode.name: mode
    for mode in (
        Mode(EAGER),
        Mode("default"),
        Mode("reduce-overhead"),
        Mode("max-autotune"),
    )
}


def place(name: str) -> int:
    """The place of a mode in the order of `MODES`; a stranger's mode comes last."""
    return list(MODES).index(name) if name in MODES else len(MODES)
