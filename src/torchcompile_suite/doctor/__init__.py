"""``torchcompile-suite doctor``: faults of this machine that affect compiling or measuring.

`software` checks the Python whose torch is to be used, `hardware` checks the machine, and `gpus`
its GPU. The words of all faults and their remedies are in ``faults.toml``.
"""

from __future__ import annotations

import tempfile
from enum import Enum
from functools import cache
from pathlib import Path

import msgspec

FAULTS = Path(__file__).with_name("faults.toml")


class Level(str, Enum):
    """How severe a fault is. An error makes numbers wrong, or nothing runs."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Check(msgspec.Struct, frozen=True):
    """One check: its name, its level, the observation, and the remedy unless the level is ok."""

    name: str
    level: Level
    says: str
    remedy: str = ""


def ok(name: str, says: str) -> Check:
    """A check without a fault."""
    return Check(name, Level.OK, says)


def fault(kind: str, **words: object) -> Check:
    """The fault of that kind in ``faults.toml``, with the words for what it has in braces."""
    texts = {field: text.format(**words) for field, text in _faults()[kind].items()}
    return Check(texts["name"], Level(texts["level"]), texts["says"], texts["remedy"])


def temporary() -> Path | None:
    """The folder for temporary files; None if there is none in which a file can be written."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return None


@cache
def _faults() -> dict[str, dict[str, str]]:
    return msgspec.toml.decode(FAULTS.read_bytes(), type=dict[str, dict[str, str]])
