"""Segments: the files that keep measurements for ever.

``results/<machine>/<release>/<SHA-256>.jsonl.xz`` holds the measurements of one piece of a run: of
one commit in one environment. Its name is the first half of the SHA-256 of its bytes, so a segment
is never rewritten, and a damaged one is seen. Results grow by adding segments. Two stores are
merged by the union of their files: files of the same name are the same.

The content is lines of JSON. The first line is the `Header`, each other line is a measurement in
its one form (`canonical`), by which two measurements are one (`record_id`).

xz, because a measuring process reads segments, too, and the environment of a release has no
packages but those of its lock: Python itself reads xz. On the recorded results it takes 77 % of
gzip's bytes. Its output may change with its version; only the reader has to stay the same, since
the name is that of the bytes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from ..host.files import write_atomically
from . import regular

T = TypeVar("T")

SUFFIX = ".jsonl.xz"
# Of the 64 hexadecimal digits of the name. Nobody can make two files with the same 128 bits.
DIGITS = 32
# Lines of a segment, before compression: about 1 MiB compressed, far from the limits of git hosts.
PIECE_BYTES = 8 << 20
# What a reader accepts. The suite never writes a segment of half of it. A small file can expand to
# anything, so the limit holds while reading.
MOST_BYTES = 16 << 20
# Memory for the decoder: a file can ask for gigabytes. The suite's own files need 9 MiB.
_MOST_MEMORY_BYTES = 64 << 20

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+\-]{0,79}", re.ASCII)
# Parts of file names: a stranger's must not lead into another folder.
Text = Annotated[str, Meta(max_length=500, pattern=r"^[^/\\\x00-\x1f\x7f]*\Z")]
# Of a file and of its content, enough for any header.
_HEAD_BYTES = 16 << 10
# JSON has one kind of number. Up to here a whole number is the same as integer and as float.
_WHOLE = 2**53


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a segment: where its measurements belong.

    - ``commit``: the first 8 digits. ``env_name``: ASV's name of the environment.
    - ``release``: the name of the folder.
    - ``format``: the version of the form of a segment.
    """

    machine: Text
    release: Text
    commit: Text
    env_name: Text
    format: Literal[1] = 1


class Segment(NamedTuple):
    """The content of a segment: its header, and a line of JSON for each measurement."""

    header: Header
    lines: list[bytes]


def canonical(text: bytes) -> bytes:
    """The JSON value of ``text`` in its one form, without a newline.

    The form is computed from the JSON as it was written, and not from the types of this version of
    the suite: a later version has more fields, and would give an old measurement another identity.

    Keys are sorted, there is no space, text is UTF-8 and not escaped. A number without a fraction
    is written without one (1 for 1.0); other numbers have the fewest digits that give the same
    float. So two texts of one value give the same bytes. Raises ValueError, also for NaN, infinity
    and half a surrogate pair, which are no JSON; RecursionError for a value that is nested deeply.
    """
    value = json.loads(text, parse_float=_number, parse_constant=_refuse)
    form = json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
    )
    return form.encode()


def record_id(form: bytes) -> str:
    """The identity of a measurement: the SHA-256 of its one form, 64 hexadecimal digits.

    Two measurements are one if they have the same cell, the same second of their start and the same
    figures. Machine, commit and environment are the place of a measurement, not a part of it.
    """
    return hashlib.sha256(form).hexdigest()


def _number(digits: str) -> int | float:
    number = float(digits)
    return int(number) if abs(number) < _WHOLE and number.is_integer() else number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def folder_name(wanted: str, otherwise: str) -> str:
    """The name of a release's folder: the first of both texts that can be one.

    The texts come from records, and may be paths.
    """
    return next((name for name in (wanted, otherwise) if _FOLDER.fullmatch(name)), "unknown")


def pieces(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines in groups, each for a segment of its own."""
    return by_size(lines, lambda line: len(line) + 1, PIECE_BYTES)


def by_size(items: Iterable[T], size_of: Callable[[T], int], most_bytes: int) -> Iterator[list[T]]:
    """The items in groups, in their order. A group has at most ``most_bytes``, or one item."""
    piece: list[T] = []
    size = 0
    for item in items:
        if piece and size + size_of(item) > most_bytes:
            yield piece
            piece, size = [], 0
        piece.append(item)
        size += size_of(item)
    if piece:
        yield piece


def encode(segment: Segment) -> tuple[Path, bytes]:
    """The path of a segment below its machine's folder, and its bytes."""
    head = msgspec.json.encode(segment.header, order="sorted")
    content = b"".join(line + b"\n" for line in (head, *segment.lines))
    data = lzma.compress(content, format=lzma.FORMAT_XZ)
    return Path(segment.header.release, name_of(data)), data


def name_of(data: bytes) -> str:
    """The name of the file with these bytes."""
    return hashlib.sha256(data).hexdigest()[:DIGITS] + SUFFIX


def write(machine_folder: Path, segment: Segment) -> Path:
    """Add a segment to a machine's folder, completely or not at all. Raises OSError."""
    path, data = encode(segment)
    add(machine_folder / path, data)
    return machine_folder / path


def add(file: Path, data: bytes) -> bool:
    """Write the bytes of a segment; False if they are there already.

    Raises OSError, also if the release's folder is a link: nobody would read the segment there.
    """
    if file.parent.is_symlink():
        raise OSError(errno.ELOOP, "a link in place of a folder", str(file.parent))
    try:
        if regular.read_own(file, len(data)) == data:
            return False
    except OSError:
        pass  # missing or damaged
    write_atomically(file, data)
    return True


def read(file: Path) -> Segment:
    """The content of a segment.

    Raises OSError, and ValueError with a message of one line where the file is damaged, is in
    another place than it says, or expands beyond `MOST_BYTES`.
    """
    return decode(file, regular.read_own(file, MOST_BYTES))


def decode(file: Path, data: bytes) -> Segment:
    """The segment of these bytes at the place of ``file``. Raises the ValueError of `read`."""
    if file.name != name_of(data):
        raise ValueError("damaged: its name is not the SHA-256 of its bytes")
    # Never more than that is made of a file.
    content, whole = _decompressed(data, MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"expands to more than {MOST_BYTES >> 20} MiB")
    if not whole:
        raise ValueError("cannot be decompressed: not one whole stream")
    head, *lines = content.removesuffix(b"\n").split(b"\n")
    header = _header(head)
    check_place(file, header)
    return Segment(header, lines)


def check_place(file: Path, header: Header) -> None:
    """Raise ValueError if the file is not where its header says."""
    if file.parent.parent.name != header.machine or file.parent.name != header.release:
        raise ValueError(f"it belongs into {f'{header.machine}/{header.release}'!r}")


def _decompressed(data: bytes, most_bytes: int) -> tuple[bytes, bool]:
    """At most that much of the content, and whether it is all of one stream."""
    try:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY_BYTES)
        content = decoder.decompress(data, most_bytes)
    except lzma.LZMAError as error:
        raise ValueError(f"cannot be decompressed: {error}") from None
    return content, decoder.eof and not decoder.unused_data


def header(file: Path) -> Header:
    """The header of a segment, without the check of its name. Raises the errors of `read`."""
    with regular.open_own(file) as stream:
        data = stream.read(_HEAD_BYTES)
    try:
        return _head(data)
    except ValueError:
        return read(file).header  # says what is wrong with the file as a whole


@lru_cache(maxsize=1024)  # a publish reads each header six times
def _head(data: bytes) -> Header:
    """The header of a segment that begins with these bytes."""
    return _header(_decompressed(data, _HEAD_BYTES)[0].partition(b"\n")[0])


class _Format(Struct):
    format: int = 0


def _header(line: bytes) -> Header:
    fault = "its first line is no header"
    written = regular.decoded(line, _Format, fault).format
    if written > Header.__struct_defaults__[0]:
        raise ValueError(
            f"written by a newer version of the suite (format {written}); update torchcompile-suite"
        )
    return regular.decoded(line, Header, fault)
