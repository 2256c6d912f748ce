"""Writes the tables of the evidence: to the terminal, and as Markdown into evidence/README.md.

The page has a pair of markers for each script, such as ``<!-- coverage -->`` and
``<!-- /coverage -->``. What a script publishes replaces the text between its own markers. The rest
of the page is written by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host.files import write_atomically
from torchcompile_suite.measurement import Launch
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.presentation.terminal import Output, markdown

PAGE = Path(__file__).with_name("README.md")
# A table, or a paragraph between tables.
Part: TypeAlias = Sheet | str


def run(
    name: str,
    parts: Callable[[], Sequence[Part]],
    measure: Callable[[], None] | None = None,
    page: Path = PAGE,
) -> None:
    """The main function of a script: measure what is missing, then publish ``parts`` in ``page``.

    With the option ``--kept`` nothing is measured.
    """
    parser = argparse.ArgumentParser(prog=f"python -m evidence.{name}")
    if measure is not None:
        parser.add_argument(
            "--kept", action="store_true", help="Measure nothing; use the kept data."
        )
    options = parser.parse_args()
    if measure is not None and not options.kept:
        measure()
    publish(name, parts(), page)


def publish(name: str, parts: Sequence[Part], page: Path = PAGE) -> None:
    """Print the parts, and write them into the page between the markers of ``name``.

    Raises SuiteError if the page has no such markers.
    """
    out = Output()
    for part in parts:
        if isinstance(part, Sheet):
            out.draw(part)
        else:
            print(part)
    text = "\n\n".join(markdown(part) if isinstance(part, Sheet) else part for part in parts)
    write_atomically(page, replaced(page.read_text("utf-8"), name, text).encode())


def replaced(page: str, name: str, text: str) -> str:
    """The page with ``text`` between the markers of ``name``.

    Raises SuiteError if the page does not have both markers once, in their order.
    """
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed or begin in rest or end in after:
        raise SuiteError(f"the page must have {begin} once, and {end} once after it")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def measured_on(launches: Iterable[Launch]) -> str:
    """A line that names the PyTorch version, the processor and the threads of the launches."""
    launches = list(launches)
    places = sorted(
        {
            f"PyTorch {environment.torch} on {environment.cpu}, {environment.threads} threads"
            for launch in launches
            if (environment := launch.environment) is not None
        }
    )
    return f"{len(launches)} launches, {'; '.join(places)}."
