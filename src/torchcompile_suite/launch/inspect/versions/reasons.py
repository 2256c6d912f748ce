"""What Dynamo says when it leaves code to eager, in one line, in torch 2.4 to 2.15."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo.output_graph
import torch._dynamo.utils

from ....compiled import GraphBreak

LENGTH = 300
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# The texts of newer releases: a title, an explanation, hints, a context and a link.
_EXPLANATION = re.compile(r"Explanation: (.*?)(?:\n\s*Hint: |\n\s*\n|\Z)", re.DOTALL)
# What says only that there is a reason, which follows.
_PADDING = re.compile(r"Dynamo determined that a graph break should occur when calling .*?Reason: ")
_LINK = re.compile(r"https://\S+/gb(\d+)\.html")
_GIVEN_UP = re.compile(r"WON'T CONVERT (\S+) (.+?) line (\d+)")
_FRAME = re.compile(r'File "(?P<filename>.+)", line (?P<lineno>\d+)')
_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Failed|Unsupported): .+)$", re.MULTILINE)


def one_line(text: str) -> str:
    """The title and what it says of this code, without padding, hints and addresses.

    PyTorch's id of the reason and its link follow, where the release has one.
    """
    lines = text.strip().strip("'\"").splitlines()
    if not lines:
        return ""
    title = lines[0].strip()
    if explained := _EXPLANATION.search(text):
        title = f"{title}: {_PADDING.sub('', ' '.join(explained[1].split()))}"
    for folder in (str(Path(torch.__file__).parents[1]), str(Path.home())):
        title = title.replace(folder, "...")
    title = _ADDRESS.sub("", title)
    link = _LINK.search(text)
    end = f" (GB{link[1]}, {link[0]})" if link else ""
    return _shortened(title, LENGTH - len(end)) + end


def _shortened(text: str, length: int) -> str:
    """The text, or as many of its sentences as fit."""
    if len(text) <= length:
        return text
    sentences = text[: length + 1].rpartition(". ")[0]
    return f"{sentences}." if sentences else f"{text[: length - 3]}..."


def place(frames: Sequence[Any]) -> str:
    """``file.py:line`` of the innermost frame that is not torch's own; empty if there is none."""
    own = f"{Path(torch.__file__).parent}/"
    users = [frame for frame in frames if not frame.filename.startswith(own)]
    return f"{Path(users[-1].filename).name}:{users[-1].lineno}" if users else ""


def skip(text: str) -> str:
    """Why a graph runs without CUDA graphs, and the user's line, in one line.

    The stack follows the reason in further lines, where torch knows it.
    """
    reason, _, stack = text.strip().partition("Found from")
    reason = reason.partition("\n")[0].rstrip(" .")[:LENGTH]
    where = place([SimpleNamespace(**frame.groupdict()) for frame in _FRAME.finditer(stack)])
    return f"{reason} ({where})" if where else reason


class GivenUp(logging.Handler):
    """Frames that Dynamo gave up and left to eager, without a graph break.

    Counters have most of the reasons. An error that ``suppress_errors`` hides is in the log only.
    """

    def __init__(self) -> None:
        """Listen from now on."""
        super().__init__()
        self._said: list[GraphBreak] = []
        logging.getLogger("torch._dynamo.convert_frame").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what the record says of a frame."""
        text = record.getMessage()
        if found := _GIVEN_UP.search(text):
            if record.exc_info and record.exc_info[1] is not None:
                text = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            errors = _ERROR.findall(text)
            reason = one_line(errors[-1]) if errors else "Dynamo names no reason"
            self._said.append(GraphBreak(reason, f"{Path(found[2]).name}:{found[3]}"))

    def frames(self) -> list[GraphBreak]:
        """One entry for each reason; empty if Dynamo converted all frames that it met."""
        counters = torch._dynamo.utils.counters
        tried, converted = counters["frames"]["total"], counters["frames"]["ok"]
        if tried <= converted:
            return []
        breaks = {
            str(each.reason).strip() for each in torch._dynamo.output_graph.graph_break_reasons
        }
        counted = [
            (text, count)
            for kind in ("unimplemented", "graph_break")
            for text, count in counters[kind].items()
            if count > 0 and str(text).strip() not in breaks
        ]
        again = "Dynamo gives up and tries again in later calls, {} times so far: "
        found = [
            GraphBreak((again.format(count) if count > 1 else "") + one_line(str(text)), "")
            for text, count in counted
        ]
        return list(dict.fromkeys([*found, *self._said]))
