"""What usually helps against a graph break, a recompile, or a skipped CUDA graph.

The texts are those of PyTorch 2.4 to 2.15. A text that is not recognised gets the general remedy.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

# What to say of a reason, by kind.
FILE = Path(__file__).with_name("advice.toml")

Kind = Literal["graph-break", "recompile", "cuda-graph"]


class Text(Struct):
    """A line of `FILE`. ``reason``: a pattern."""

    reason: str
    says: str


def guard_of(reason: str) -> str:
    """The guard that failed, of a recompile's reason: without the frame's numbers before it, and
    without the code and the hints after it.
    """
    return re.sub(r"\s+(# |\(?HINT:).*$", "", re.sub(r"^\d+/\d+: ", "", reason))


@cache
def texts() -> dict[str, list[Text]]:
    """The lines of `FILE`, by kind."""
    return msgspec.toml.decode(FILE.read_bytes(), type=dict[str, list[Text]])


def remedy(kind: Kind, reason: str) -> str:
    """What usually helps, in one line. ``reason``: the compiler's."""
    return next(text.says for text in texts()[kind] if re.search(text.reason, reason.lower()))
