"""Shards: files of data that a page loads as classic scripts, also from the disk.

A *document* is a JSON value with a key. A *pack* is a script of some documents. It calls one
function with text that holds no result in plain: each document is compressed JSON in base64. So no
text of a stranger ever stands in a script, and a view stays small on a host that does not compress.

The name of a pack is a digest of its documents, before their compression. So a pack that has not
changed keeps its name, whatever zlib compresses it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from ..presentation.sheets import Sheet
from ..results import segments

FOLDER = "data"
# The function that a pack calls, in assets/data.js.
FUNCTION = "torchcompileShard"
# Of a figure of a document. Words have two decimals, so nobody sees more, and the last digits of a
# figure differ between processors.
DIGITS = 6


class Encoded(NamedTuple):
    """A document: the SHA-256 of its JSON, and the JSON compressed."""

    digest: str
    data: bytes


def figure(value: float | None) -> float | None:
    """A number as it stands in a document: rounded to `DIGITS`; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def figures(values: Iterable[float | None] | None) -> list[float | None]:
    """The three numbers of an interval; three times None without one."""
    return [None] * 3 if values is None else [figure(value) for value in values]


def spread(name: str) -> list[str]:
    """The columns of an interval."""
    return [name, f"{name}_low", f"{name}_high"]


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """A table of a document."""
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def sheet(of: Sheet) -> dict[str, Any]:
    """A table of text. ``numbers``: the columns that are aligned to the right."""
    numbers = [column for column in of.columns if column in of.numbers]
    return {**table(of.columns, of.lines), "numbers": numbers}


def encode(document: Any) -> Encoded:
    """The document, compressed. NaN and infinity become null."""
    text = msgspec.json.encode(document)
    return Encoded(hashlib.sha256(text).hexdigest(), gzip.compress(text, 9, mtime=0))


def decode(data: bytes) -> Any:
    """The document of `Encoded.data`."""
    return json.loads(gzip.decompress(data))


def add(
    documents: Iterable[tuple[str, Encoded]], most_bytes: int, texts: dict[str, str]
) -> dict[str, str]:
    """Add packs of the documents, in their order, to ``texts``, by path below the report.

    Returns the pack of each document. A pack has at most ``most_bytes``, or one document. Appended
    documents change the last pack only.
    """
    places: dict[str, str] = {}
    # Three bytes are four in base64.
    for part in segments.by_size(
        documents, lambda pair: (len(pair[1].data) + 2) // 3 * 4, most_bytes
    ):
        digest = hashlib.sha256()
        for key, document in part:
            digest.update(f"{len(key)} {key} {document.digest}".encode())
        name = digest.hexdigest()[:16]
        texts[f"{FOLDER}/{name}.js"] = script(name, part)
        places |= dict.fromkeys((key for key, _ in part), name)
    return places


def script(name: str, documents: Iterable[tuple[str, Encoded]]) -> str:
    """The text of a pack of that name."""
    content = {key: base64.b64encode(document.data).decode() for key, document in documents}
    return f"{FUNCTION}({json.dumps(name)},{json.dumps(content)});\n"
