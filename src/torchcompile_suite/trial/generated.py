"""``try --target``: what a model would be compiled to on a GPU that is not here, in words.

Two modes are generated: default, and reduce-overhead for CUDA graphs. It never claims a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from .. import targets
from ..analysis import advice, generated
from ..cell import Cell
from ..engine.launches import Generator
from ..engine.processes import Environment
from ..engine.settings import Settings
from ..generated import Chain, Code, Generated, Kernel
from ..launch.messages import Order
from ..measurement import Launch, Outcome
from ..presentation.sheets import Columns, Sheet, counted
from ..presentation.wording import plural, written
from .plan import Trial, TrialError, batch
from .run import outline_of, target_variables

MODES = ("default", "reduce-overhead")


class GeneratedResult(NamedTuple):
    """What was generated: a launch for each cell, and the release of torch."""

    target: targets.Target
    torch: str
    launches: dict[Cell, Launch]


def run(
    trial: Trial,
    python: Path,
    target: targets.Target,
    hear: Callable[[str], None],
    assemble: bool = False,
    variables: Mapping[str, str] | None = None,
) -> GeneratedResult:
    """Generate the trial's cells for the target with the torch of that Python, in one process.

    ``hear`` gets a line before each cell. ``assemble``: also registers and occupancy.
    """
    launches: dict[Cell, Launch] = {}
    more = {**target_variables(trial), **(variables or {})}
    limit_s = Settings.from_environment().launch_limit_s
    with closing(Generator(Environment(python, more), target.name)) as generator:
        for cell in cells(trial, target, own_batch(trial, Environment(python, more))):
            hear(f"{cell}: generating")
            launches[cell] = generator.make(Order(cell, assemble), limit_s)
    known = (launch.environment.torch for launch in launches.values() if launch.environment)
    return GeneratedResult(target, next(known, ""), launches)


def own_batch(trial: Trial, environment: Environment) -> int:
    """The batch size of the model's own inputs. Raises TrialError if no code can be generated."""
    if trial.dynamic:
        raise TrialError("--target generates code for one shape: leave --dynamic out")
    if trial.batch_sizes or trial.target is None:
        return 1
    return batch(trial, outline_of(trial, environment))


def cells(trial: Trial, target: targets.Target, own: int) -> Iterator[Cell]:
    """The cells whose code is generated for the target. ``own``: `own_batch`."""
    modes = MODES if trial.modes == ("default",) else trial.modes
    for size in trial.batch_sizes or (own,):
        for mode in modes:
            # The device may be the GPU that is here, for `open`.
            yield trial.cell(size, mode, device="cpu", target=target.name)


def headline(trial: Trial, result: GeneratedResult) -> str:
    """The model, the target and the release, in one line."""
    return (
        f"{trial.workload} for {result.target.device} ({result.target.name}), PyTorch "
        f"{result.torch or 'unknown'}: generated without the device; counts, and no times"
    )


def table(result: GeneratedResult) -> Sheet:
    """One line for each cell that was generated. The JSON has all counts."""
    rows = [
        generated.Row(result.torch, cell, launch.outcome, generated.counts_of(made), made)
        for cell, launch in result.launches.items()
        if (made := launch.generated) is not None
    ]
    place: Columns[generated.Row] = {
        "batch": lambda row: str(row.cell.batch_size),
        "mode": lambda row: row.cell.mode,
    }
    return counted(rows, place)


def sentences(result: GeneratedResult) -> list[str]:
    """What the compiler did, and did not do, in words."""
    lines: list[str] = []
    several = len({cell.batch_size for cell in result.launches}) > 1
    told: set[int] = set()  # batch sizes: the first mode of each says more
    for cell, launch in result.launches.items():
        name = f"Mode {cell.mode}" + (f" at batch {cell.batch_size}" if several else "")
        made = launch.generated
        if made is None:
            lines.append(f"{name}: {launch.outcome}")
            continue
        parts = [("forward", made.forward), ("backward", made.backward)]
        for direction, code in parts:
            if code is not None and code.launches:
                lines.append(f"{name}, {direction}: {_fusion(code)}")
        if (with_graphs := made.total("launches_with_cuda_graphs")) is not None:
            lines.append(f"{name}: {_cuda_graphs(made, with_graphs)}")
        lines += [f"Assumed: {text}." for text in made.assumed]
        if cell.batch_size not in told:
            told.add(cell.batch_size)
            lines += [f"Graph break at {one.where}: {one.reason}" for one in made.graph_breaks]
            for direction, code in parts:
                if code is not None:
                    lines += [_chain(direction, chain) for chain in code.chains]
                    lines += [_size(kernel) for kernel in code.kernels if kernel.limited_by]
    return list(dict.fromkeys(lines))


def _fusion(code: Code) -> str:
    fused = (
        f"{code.nodes_before} operations become {code.nodes_after}"
        if code.nodes_after < code.nodes_before
        else f"{plural(code.nodes_before, 'operation')}, none fused"
    )
    # torch counts a whole table for a fused kernel that reads a few rows: then nothing is claimed.
    less = 1 - code.bytes_after / code.bytes_before if code.bytes_before else 0.0
    saved = f"; fusion saves {less:.0%} of the bytes" if less > 0 else ""
    of_host = f", {code.host_launches} of the host" if code.host_launches else ""
    return (
        f"{fused}; {plural(code.launches, 'launch')} a call: {code.triton_launches} of Triton "
        f"({plural(code.triton_kernels, 'kernel')}), {code.library_launches} of libraries{of_host}"
        f"{saved}"
    )


def _cuda_graphs(made: Generated, with_graphs: int) -> str:
    without = plural(made.total("launches") or 0, "launch")
    text = f"{without} a call, {with_graphs} with CUDA graphs"
    if made.cudagraph_skips:
        skips = "; ".join(made.cudagraph_skips)
        return f"{text}; not everything runs in CUDA graphs: {skips}"
    return text


def _chain(direction: str, chain: Chain) -> str:
    links = [chain.kernels[0]]
    for kernel, reason in zip(chain.kernels[1:], chain.reasons, strict=True):
        links.append(f"{kernel} ({reason or 'Inductor gives no reason'})")
    return f"Not fused, {direction}: " + " -> ".join(links)


def _size(kernel: Kernel) -> str:
    return (
        f"{kernel.name}: {kernel.registers} registers, {kernel.spilled_bytes} bytes spilled, "
        f"{kernel.shared_bytes} bytes shared, {kernel.warps} warps: occupancy "
        f"{kernel.occupancy:.0%}, limited by {kernel.limited_by}"
    )


def advices(result: GeneratedResult) -> list[advice.Advice]:
    """What to change in the model: graph breaks, and what keeps CUDA graphs away."""
    items: list[advice.Advice] = []
    for launch in result.launches.values():
        if launch.generated is not None:
            items += advice.of_code(launch.generated)
    return list(dict.fromkeys(items))


def failed(result: GeneratedResult) -> bool:
    """Whether any cell has no code."""
    return any(launch.generated is None for launch in result.launches.values())


class GeneratedCell(Struct):
    """What was generated for a cell; null if the outcome is not ok. ``counts``: by their names."""

    cell: Cell
    outcome: Outcome
    counts: dict[str, int] | None
    generated: Generated | None


class TriedTarget(Struct):
    """The whole answer of ``torchcompile-suite try --target``."""

    workload: str
    target: targets.Target
    torch: str
    sentences: list[str]
    advice: list[advice.Advice]
    cells: list[GeneratedCell]


def as_json(trial: Trial, result: GeneratedResult) -> bytes:
    """The whole answer as JSON."""
    cells = []
    for cell, launch in result.launches.items():
        code = launch.generated
        counts = None if code is None else generated.counts_of(code)
        cells.append(GeneratedCell(cell, launch.outcome, counts, code))
    said = sentences(result)
    content = TriedTarget(trial.workload, result.target, result.torch, said, advices(result), cells)
    return written(content)
