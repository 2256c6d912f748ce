"""What was computed from results, kept in the user's cache folder, never in results/.

A key says what something was computed from; all code of this package belongs to every key. So
nothing in the cache is ever wrong, only missing, and it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..host.files import write_atomically
from ..host.places import cache_folder
from . import regular

_MOST_BYTES = 256 << 20
_DIGEST_BYTES = 32
_CODE = (".py", ".toml", ".csv")
# With one list of sources for each computation, a forgotten file would serve old figures.
PACKAGE = Path(__file__).parents[1]


class Made(NamedTuple):
    """What was computed. Without ``keep`` it is computed again at the next time."""

    content: bytes
    keep: bool = True


def folder() -> Path:
    """The folder of the cache."""
    return cache_folder() / "results"


def get(kind: str, key: Iterable[bytes | str], make: Callable[[], Made]) -> bytes:
    """The content of that kind and key, from the cache or made now.

    A cache that cannot be read or written is as good as none, and a damaged file is made anew: a
    power failure can leave it empty. So each file begins with the digest of its content.
    """
    digest = hashlib.sha256()
    for part in (version(PACKAGE), *key):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    name = digest.hexdigest()
    file = folder() / kind / name[:2] / name[2:]
    with contextlib.suppress(OSError):
        kept = regular.read_own(file, _MOST_BYTES)
        if _sealed(content := kept[_DIGEST_BYTES:]) == kept:
            return content
    made = make()
    if made.keep:
        with contextlib.suppress(OSError):
            write_atomically(file, _sealed(made.content), sync=False)
    return made.content


def _sealed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


@cache
def version(*sources: Path) -> str:
    """The version of code: a digest of these files, and of the code in these folders.

    Code is Python and the tables beside it (TOML, CSV). So a changed computation never gets what an
    older one has made.
    """
    digest = hashlib.sha256()
    for source in sources:
        found = source.rglob("*") if source.is_dir() else [source]
        for file in sorted(one for one in found if one == source or one.suffix in _CODE):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
