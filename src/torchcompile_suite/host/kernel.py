"""Files in which the kernel tells of the machine."""

from __future__ import annotations

from pathlib import Path


def text(file: Path) -> str:
    """The text of a file of the kernel; empty if it cannot be read."""
    try:
        return file.read_text("utf-8").strip()
    except OSError:
        return ""
