"""Eager and the modes of ``torch.compile``, and the release each appeared in."""

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
        """Whether the mode calls ``torch.compile`` at all."""
        return self.name != EAGER


# The order is that of ASV's axis: append, never reorder. Names are torch's own.
MODES = {
    mode.name: mode
    for mode in (
        Mode(EAGER),
        Mode("default"),
        Mode("reduce-overhead"),
        Mode("max-autotune"),
    )
}
