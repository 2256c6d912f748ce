"""How ASV reads and writes its JSON files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from asv import util

from ..host.files import write_atomically
from ..results import regular


def write_json(_original: Callable[..., Any]) -> Callable[..., Any]:
    """`util.write_json`, all or nothing: a full disk must not truncate a result file."""

    def write_json(
        path: str, data: Any, api_version: int | None = None, compact: bool = False
    ) -> None:
        if api_version is not None:
            data = {**data, "version": api_version}
        text = json.dumps(data) if compact else json.dumps(data, indent=4, sort_keys=True)
        try:
            write_atomically(Path(path), text.encode(), sync=False)
        except OSError as error:
            raise util.UserError(
                f"cannot write {path}: {error.strerror}; nothing was changed"
            ) from None

    return write_json


def load_json(original: Callable[..., Any]) -> Callable[..., Any]:
    """`util.load_json`, which refuses a FIFO or a device: reading it may never end.

    Sound JSON of the wanted version is read by msgspec, in a fourth of the time: `asv publish`
    reads each result file three times. ASV reads all others, and says what is wrong with them.
    """

    def load_json(path: str, api_version: int | None = None, js_comments: bool = False) -> Any:
        if Path(path).exists() and not regular.is_regular(Path(path)):
            raise util.UserError(f"{path} is {regular.REASON}")
        if not js_comments:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                data = msgspec.json.decode(Path(path).read_bytes())
                if api_version is None:
                    return data
                if isinstance(data, dict) and data.get("version") == api_version:
                    del data["version"]
                    return data
        return original(path, api_version, js_comments)

    return load_json
