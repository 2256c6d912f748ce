"""Launches of the suite with the torch of the newest release: what the scripts here share."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from torchcompile_suite import workloads
from torchcompile_suite.cell import Cell
from torchcompile_suite.engine import processes
from torchcompile_suite.engine.processes import Environment
from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host.files import append_line, read_lines
from torchcompile_suite.measurement import Launch
from torchcompile_suite.releases import apart, catalogue, environments
from torchcompile_suite.request import Request

ROOT = Path(__file__).resolve().parents[1]
# Without this variable every process starts another one, which imports torch, to learn which
# vector instructions the processor has.
NO_VECTOR_CHECK = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}
NONE: Mapping[str, str] = MappingProxyType({})


class Pool(NamedTuple):
    """Launches of a cell in one file of a folder: its name, and how many are wanted."""

    name: str
    cell: Cell
    wanted: int


def newest(cells: Iterable[Cell] = ()) -> Path:
    """The Python of the newest release, in its own environment, which is made if it is missing.

    It finds the libraries that the cells need.
    """
    python = environments.ready(catalogue.read()[-1], say=print).absolute()
    apart.provide(python, chain.from_iterable(workloads.libraries(one.workload) for one in cells))
    return python


def variables(python: Path, more: Mapping[str, str] = NONE) -> dict[str, str]:
    """All environment variables of a process of that Python, which finds the suite."""
    return processes.variables_of(Environment(python, {**NO_VECTOR_CHECK, **more}))


def launch(python: Path, request: Request, more: Mapping[str, str] = NONE) -> Launch:
    """One launch of the suite in that Python. Raises SuiteError if it fails."""
    Path(request.cache_dir).mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(python), "-m", "torchcompile_suite.engine.launches"],
        input=msgspec.json.encode(request),
        env=variables(python, more),
        stdout=subprocess.PIPE,
        check=True,
    )
    made = msgspec.json.decode(done.stdout, type=Launch)
    if not made.outcome.ok:
        raise SuiteError(f"{request.cell}: {made.outcome}")
    return made


def warm(python: Path, cell: Cell, cache: Path, more: Mapping[str, str] = NONE) -> Launch:
    """A warm launch. An empty cache is filled first, by a cold one with a settled heap."""
    if not cache.exists():
        settled = msgspec.structs.replace(cell, allocator="system")
        launch(python, Request(settled, "cold", str(cache), observe=False), more)
    return launch(python, Request(cell, "warm", str(cache), observe=False), more)


def kept(folder: Path, name: str) -> list[Launch]:
    """The launches of a pool."""
    return read_lines(folder / f"{name}.jsonl", Launch)


def missing(folder: Path, pools: Sequence[Pool]) -> list[Pool]:
    """The pools that need another launch: one round of turns."""
    return [pool for pool in pools if len(kept(folder, pool.name)) < pool.wanted]


def fill(folder: Path, pools: Sequence[Pool], more: Mapping[str, str] = NONE) -> None:
    """Make what is missing, in turns, so that the drift of the machine meets all pools alike.

    Only warm launches are kept; the cold launch before them fills the cache. May be interrupted and
    run again. Nothing is installed if the pools are full.
    """
    if not missing(folder, pools):
        return
    python = newest()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        while turns := missing(folder, pools):
            for pool in turns:
                made = warm(python, pool.cell, Path(scratch, pool.name), more)
                append_line(folder / f"{pool.name}.jsonl", msgspec.json.encode(made))
            counts = (f"{pool.name} {len(kept(folder, pool.name))}" for pool in turns)
            print(", ".join(counts), flush=True)
