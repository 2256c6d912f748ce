"""What a check says."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Level(str, Enum):
    """How bad it is: an error spoils what is measured or keeps it from running at all."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Check(NamedTuple):
    """One thing that was looked at: what was seen, and the remedy unless it is fine."""

    name: str
    level: Level
    says: str
    remedy: str = ""


def ok(name: str, says: str) -> Check:
    """Nothing to mend."""
    return Check(name, Level.OK, says)


def warning(name: str, says: str, remedy: str) -> Check:
    """Numbers may be noisier, or slower, than they need be."""
    return Check(name, Level.WARNING, says, remedy)


def error(name: str, says: str, remedy: str) -> Check:
    """Numbers would be wrong, or nothing would run."""
    return Check(name, Level.ERROR, says, remedy)
