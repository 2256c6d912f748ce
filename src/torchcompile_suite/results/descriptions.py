"""What a machine and an environment say about themselves. Every reader of such a file is here.

machine.json may come from a stranger, and its values are published: in names of files, on pages, in
the terminal. So a link is refused, which could lead to a private file, and so is text that no
machine has.

The marker of an overlay says that a Python environment has a commit's Python files over its torch.
`torchcompile_suite.commits` writes it. A measurement in that environment records the marker, or is
refused because of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..conditions import Overlay
from ..errors import SuiteError
from ..host import machine, nvml
from ..measurement import Measurement
from . import regular

OVERLAY_FILE = "torchcompile-suite-overlay.json"
_MOST_BYTES = 1 << 20
# ASV makes the values parts of the names of files, of which a file system takes 255 bytes.
_NAME_BYTES = 200
_FIELDS = {*machine.Machine._fields, "version"}
# What steers a terminal, reverses the order of text, or cannot be encoded.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Description(NamedTuple):
    """A machine.json: its text and its fields."""

    text: bytes
    fields: dict[str, str | int]


def check_device(folder: Path, measurement: Measurement) -> None:
    """Raise SuiteError if the measurement is of another device than the machine of the folder.

    A machine without a description has nothing to compare yet.
    """
    try:
        expected = read(folder).fields.get("device")
    except ValueError:
        return
    measured = _device(measurement)
    # The machine's device is a kind where no driver gave its name.
    if measured and expected not in (None, measured, measurement.cell.device):
        raise SuiteError(
            f"this was measured on {measured!r}, but {folder.name} has {expected!r}: name the "
            "machine otherwise, or select one GPU by its UUID: CUDA_VISIBLE_DEVICES=GPU-..."
        )


def _device(measurement: Measurement) -> str:
    """The device that was measured, as torch calls it; empty if none was, or if it is not known."""
    cell, environment = measurement.cell, measurement.environment
    if cell.target or environment is None:
        return ""
    if cell.device == "cpu":
        return cell.device
    slice_of = environment.accelerator.mig if environment.accelerator is not None else ""
    return nvml.full_name(environment.device_name, slice_of)


def check_text(text: str) -> str:
    """The text, which can be a part of the name of a file and be printed. Raises ValueError."""
    if found := _UNSAFE.search(text):
        raise ValueError(f"text with the character {found[0]!a}")
    if len(text.encode()) > _NAME_BYTES:
        raise ValueError(f"text of more than {_NAME_BYTES} bytes: {text[:20]!r}...")
    return text


def read(folder: Path) -> Description:
    """The description in a machine's folder. Raises ValueError with a message of one line."""
    try:
        text = regular.read_own(folder / machine.FILE, _MOST_BYTES)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    fields = regular.decoded(text, dict[str, str | int], "no description of a machine")
    # With a key of a stranger's, such as machine-amd, two machines could have one graph.
    if unknown := sorted(fields.keys() - _FIELDS):
        raise ValueError(f"no description of a machine: the field {unknown[0][:40]!a}")
    # ASV makes folders of these.
    for key, value in fields.items():
        check_text(f"{key}-{value}")
    if not machine.NAME.fullmatch(folder.name):
        raise ValueError("the name of its folder is none that a machine can have")
    if fields.get("machine") != folder.name:
        name = fields.get("machine")
        raise ValueError(f"the machine is {name!r}, which is not the name of its folder")
    return Description(text, fields)


def overlay(prefix: str | Path = sys.prefix) -> Overlay | None:
    """The overlay of the environment at ``prefix`` (default: this Python), or None.

    A marker that cannot be read counts as refused, because the state of the files is unknown.
    """
    try:
        return msgspec.json.decode(Path(prefix, OVERLAY_FILE).read_bytes(), type=Overlay)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        reason = f"{OVERLAY_FILE} cannot be read ({error}); install another commit"
        return Overlay("", "", refused=reason)
