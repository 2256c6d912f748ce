"""The result of a check."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Level(str, Enum):
    """How severe a fault is. An error makes numbers wrong, or nothing runs."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Check(NamedTuple):
    """One check: its name, its level, the observation, and the remedy unless the level is ok."""

    name: str
    level: Level
    says: str
    remedy: str = ""


def ok(name: str, says: str) -> Check:
    """A check without a fault."""
    return Check(name, Level.OK, says)


def warning(name: str, says: str, remedy: str) -> Check:
    """A fault that makes numbers noisier, or calls slower."""
    return Check(name, Level.WARNING, says, remedy)


def error(name: str, says: str, remedy: str) -> Check:
    """A fault that makes numbers wrong, or nothing runs."""
    return Check(name, Level.ERROR, says, remedy)
