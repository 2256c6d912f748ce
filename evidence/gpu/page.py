"""Writes what a device said as one Markdown page: ``python -m evidence.gpu.page h100``.

Reads ``h100.jsonl`` beside this file, which is the logs of all parts one after the other, and
writes ``h100.md``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from torchcompile_suite.cell import Cell
from torchcompile_suite.host.files import read_lines, write_atomically
from torchcompile_suite.presentation.sheets import Sheet
from torchcompile_suite.presentation.terminal import escaped, markdown
from torchcompile_suite.presentation.wording import printable

from .campaign import MODES, PLAIN_CELLS, Step

PLACE = Path(__file__).parent


def page(name: str, steps: Sequence[Step]) -> str:
    """The whole page."""
    parts = [f"# What {name} said", _intro(steps)]
    for title, rows in (
        ("One cold launch of each kind", _table(LAUNCH, _launches(steps, "A"))),
        ("Cells of the documents", _table(MEASURED, _measured(steps))),
        ("Plain scripts beside the suite", _table(PLAIN, _plain(steps))),
        ("Where the time of a call goes", _table(DIVIDED, _divided(steps))),
        ("The same by a plain script", _table(DIVIDED_PLAIN, _divided_plain(steps))),
        ("Memory of resnet18", _table(MEMORY, _memory(steps))),
        ("What torch.profiler sees of ten calls of resnet18", _table(SEEN, _seen(steps))),
        ("The calibration loop", _table(LOOP, _loop(steps))),
        (
            "Generated for a GPU that is not here, and run on this one",
            _table(COUNTS, _counts(steps)),
        ),
    ):
        if rows:
            parts += [f"## {title}", rows]
    for step in steps:
        if step.name == "doctor":
            parts += ["## doctor", f"```text\n{_plain_text(step.text)}\n```"]
    return "\n\n".join(parts) + "\n"


def _plain_text(said: str) -> str:
    """What a program printed, which must not end the block that it stands in."""
    return "\n".join(printable(line).replace("`", "'") for line in said.strip().splitlines()[1:])


def _table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    made = [list(line) for line in lines]
    return markdown(Sheet(list(columns), frozenset(columns[1:]), made)) if made else ""


def _intro(steps: Sequence[Step]) -> str:
    spent = sum(step.seconds for step in steps)
    environments = [
        step.launch.environment for step in steps if step.launch and step.launch.environment
    ]
    where = sorted(
        {
            f"PyTorch {one.torch} on {one.device_name}, driver {one.driver}, {one.cpu}"
            for one in environments
        }
    )
    return escaped(
        f"Written by evidence/gpu/page.py from {len(steps)} steps of evidence/gpu/campaign.py, "
        f"{spent / 60:.0f} minutes in all. {'; '.join(where)}."
    )


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def _sides(pairs: Sequence[tuple[float, float]]) -> list[str]:
    if not pairs:
        return ["", "", ""]
    eager, mode = (median(side) for side in zip(*pairs, strict=True))
    return [_us(eager), _us(mode), f"{mode / eager:.3f}"]


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.0f}"


LAUNCH = [
    *("cell", "outcome", "eager us", "mode us", "ratio", "alone: eager us", "mode us", "ratio"),
    *("kernels a call", "launches a call", "MB reserved", "MB allocated", "seconds"),
]


def _launches(steps: Iterable[Step], part: str) -> Iterator[list[str]]:
    for step in steps:
        if step.part != part or (made := step.launch) is None:
            continue
        profile = made.compiled.profile if made.compiled else None
        counts = ["", ""]
        if profile is not None:
            counts = [
                f"{each / profile.calls:.0f}" for each in (profile.kernels, profile.kernel_launches)
            ]
        yield [
            step.name,
            str(made.outcome),
            *_sides(made.pairs_s),
            *_sides(made.latency_s),
            *counts,
            _megabytes(made.peak_memory_bytes),
            _megabytes(made.peak_allocated_bytes),
            f"{step.seconds:.0f}",
        ]


MEASURED = ["cell", "launch: eager and mode"]


def _measured(steps: Iterable[Step]) -> Iterator[list[str]]:
    for step in steps:
        if step.part == "C":
            yield from ([step.name, each] for each in step.text.strip().split(" | "))


PLAIN = [
    *("model", "mode", "script us", "a wait after each call", "by events", "script us, again"),
    *("of eager's time", "a wait after each call", "suite: of eager's time", "suite: alone"),
]


def _plain(steps: Sequence[Step]) -> Iterator[list[str]]:
    said = {step.name: step.data for step in steps if step.name.startswith("plain ")}
    launches = {step.cell: step.launch for step in steps if step.cell and step.launch}
    for model, mode in PLAIN_CELLS:
        mine, eager = said.get(f"plain {model} {mode}"), said.get(f"plain {model} eager")
        if not mine or not eager:
            continue
        suite = launches.get(Cell(model, 1, mode, device="cuda"))
        yield [
            model,
            mode,
            *(f"{mine[key]:,.1f}" for key in ("one after the other", "alone", "by events")),
            f"{mine['once more']:,.1f}",
            f"{_calls(mine) / _calls(eager):.3f}",
            f"{mine['alone'] / eager['alone']:.3f}",
            _sides(suite.pairs_s)[2] if suite else "",
            _sides(suite.latency_s)[2] if suite else "",
        ]


def _calls(said: dict[str, float]) -> float:
    """Calls one after the other: the first and the last measurement, which a drift moves apart."""
    return math.sqrt(said["one after the other"] * said["once more"])


DIVIDED = ["call", "part", "eager us", "compiled us"]
IDLE = "idle gaps of the device"
# Lines of a call in the table.
MOST_PARTS = 6


def _divided(steps: Iterable[Step]) -> Iterator[list[str]]:
    for step in steps:
        if step.part == "W" and (call_s := step.data.get("call_s")):
            families = step.data["families"]
            works_s = [whole - idle for whole, idle in zip(call_s, families[IDLE], strict=True)]
            yield [step.name, "the whole call", *map(_us, call_s)]
            yield ["", "the device works", *map(_us, works_s)]
            for what in list(families)[:MOST_PARTS]:
                yield ["", what, *map(_us, families[what])]


DIVIDED_PLAIN = [
    *("model and mode", "eager us", "compiled us", "works: eager us", "works: compiled us"),
    *("eager convolutions us", "eager addmm us"),
]


def _divided_plain(steps: Iterable[Step]) -> Iterator[list[str]]:
    for step in steps:
        if step.part == "W" and (call_us := step.data.get("call")):
            operators = (step.data[f"aten::{name}"] for name in ("cudnn_convolution", "addmm"))
            yield [
                step.name.removeprefix("kernels of "),
                *(f"{each:,.1f}" for each in (*call_us, *step.data["works"], *operators)),
            ]


MEMORY = ["mode", "MB reserved", "MB of tensors", "MB of CUDA graphs' pools"]


def _data(steps: Iterable[Step], name: str) -> dict[str, Any]:
    return next((step.data for step in steps if step.name == name), {})


def _memory(steps: Iterable[Step]) -> Iterator[list[str]]:
    for mode, said in _data(steps, "memory").items():
        pools = sum(size for pool, size in said.get("pools", {}).items() if pool != "(0, 0)")
        yield [mode, *map(_megabytes, (said["reserved"], said.get("allocated"), pools))]


SEEN = ["name", *MODES]


def _seen(steps: Iterable[Step]) -> Iterator[list[str]]:
    said = _data(steps, "activities")
    for name in sorted({name for names in said.values() for name in names}):
        yield [name, *(f"{said[mode].get(name, 0):,}" for mode in SEEN[1:])]


LOOP = ["threads", "least us", "median us", "most us"]


def _loop(steps: Iterable[Step]) -> Iterator[list[str]]:
    for threads, times in _data(steps, "calibration").items():
        yield [threads, *(f"{each:,.0f}" for each in times)]


COUNTS = [
    *("cell", "generated: Triton kernels", "launches", "with CUDA graphs", "MB"),
    *("metrics: kernels", "launches", "MB", "time line: kernels", "launches"),
]


def _counts(steps: Iterable[Step]) -> Iterator[list[str]]:
    for step in steps:
        if step.part != "D" or not step.data:
            continue
        made, metrics = step.data["generated"], step.data["Inductor's metrics"]
        ran = step.data["time line"]
        yield [
            step.name,
            *(
                _whole(made[key])
                for key in ("Triton kernels", "launches", "launches with CUDA graphs")
            ),
            _megabytes(made["bytes"]),
            *(_whole(metrics[key]) for key in ("Triton kernels", "launches")),
            _megabytes(metrics["bytes"]),
            *(_whole(ran[key]) for key in ("kernels", "launches")),
        ]


def _whole(count: float | None) -> str:
    return "" if count is None else f"{count:,.0f}"


def main() -> None:
    """Write the page of one device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="of the device, such as h100")
    name = parser.parse_args().name
    written = page(name, read_lines(PLACE / f"{name}.jsonl", Step))
    write_atomically(PLACE / f"{name}.md", written.encode())


if __name__ == "__main__":
    main()
