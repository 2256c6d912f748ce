"""The marker of an overlay: a commit's Python files over the torch of a Python environment.

`torchcompile_suite.commits` writes the marker into the environment. A measurement in that
environment records the marker, or is refused because of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from ..cell import Overlay

FILE = "torchcompile-suite-overlay.json"


def read(prefix: str | Path = sys.prefix) -> Overlay | None:
    """The overlay of the environment at ``prefix`` (default: this Python), or None.

    A marker that cannot be read counts as refused, because the state of the files is unknown.
    """
    try:
        return msgspec.json.decode(Path(prefix, FILE).read_bytes(), type=Overlay)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        return Overlay("", "", refused=f"{FILE} cannot be read ({error}); install another commit")
