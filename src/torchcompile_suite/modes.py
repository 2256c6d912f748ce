"""Eager and the modes of ``torch.compile``. All releases of the ledger have all of them."""

from __future__ import annotations

EAGER = "eager"
# Mode -> its place in the order. That is the order of ASV's axis: only append, never reorder. The
# names are torch's.
MODES = {
    name: place for place, name in enumerate((EAGER, "default", "reduce-overhead", "max-autotune"))
}

# On a GPU their code runs in CUDA graphs.
GRAPH_MODES = ("reduce-overhead", "max-autotune")


def place(name: str) -> int:
    """The place of a mode in the order of `MODES`; a stranger's mode comes last."""
    return MODES.get(name, len(MODES))
