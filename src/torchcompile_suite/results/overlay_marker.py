"""What was laid over the torch of a Python environment, if anything.

`torchcompile_suite.commits` writes it where a commit's Python files lie over a release's binary,
and whoever measures in that environment records it, or refuses to measure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from ..cell import Overlay

FILE = "torchcompile-suite-overlay.json"


def read(prefix: str | Path = sys.prefix) -> Overlay | None:
    """The overlay of the environment at ``prefix`` (else of this Python); None where there is none.

    One that cannot be read counts as refused: nobody knows what lies there.
    """
    try:
        return msgspec.json.decode(Path(prefix, FILE).read_bytes(), type=Overlay)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        return Overlay("", "", refused=f"{FILE} cannot be read ({error}); install another commit")
