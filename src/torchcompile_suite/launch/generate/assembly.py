"""What Triton makes of a kernel for the target: registers, spills, shared memory, occupancy.

Triton compiles without a device, and brings NVIDIA's ptxas. Where Inductor would time several
configurations of a kernel on the device, its first one is taken. `occupancy` follows the rules of
NVIDIA's occupancy calculator; ``targets.toml`` names the sources.
"""

from __future__ import annotations

import ast
import re
import runpy
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from ...host.programs import run
from ...targets import REGISTER_UNIT, WARP, WARP_UNIT, Target

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores")
_STATIC_SHARED = re.compile(r"(\d+) bytes smem")
_ARCHITECTURE = re.compile(r"^\.target\s+(sm_\w+)", re.MULTILINE)


class Place(NamedTuple):
    """Which kernel: its pass, the number of its graph, and its name in the graph's code."""

    direction: str
    graph: int
    name: str


class Assembled(NamedTuple):
    """The fields of `generated.Kernel` that the assembler decides."""

    registers: int
    spilled_bytes: int
    shared_bytes: int
    warps: int
    occupancy: float
    limited_by: str


def assemble(
    sources: Iterable[tuple[Place, str]], target: Target
) -> tuple[dict[Place, Assembled], dict[str, str]]:
    """The assembled kernels; and by name, why others could not be.

    ``sources``: of each, as a Python expression of the generated module.
    """
    done: dict[Place, Assembled] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="assembly-") as folder:
        for number, (place, code) in enumerate(sources):
            try:
                file = Path(folder, f"kernel_{number}.py")
                file.write_text(_text(code), encoding="utf-8")
                done[place] = _assemble(file, place.name, target)
            except Exception as error:
                lines = str(error).splitlines() or [type(error).__name__]
                failed[place.name] = f"{type(error).__name__}: {lines[0]}"[:200]
    return done, failed


def _text(code: str) -> str:
    """The source of a kernel, from the expression ``async_compile.triton(name, source, ...)``."""
    for node in ast.walk(ast.parse(code.strip(), mode="eval")):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            return node.value
    raise ValueError("not the source of a Triton kernel")


def _assemble(file: Path, name: str, target: Target) -> Assembled:
    import triton

    kernel = _kernel(file, name)
    kernel.configs = kernel.configs[:1]
    compiled: list[Any] = []
    compile_ = triton.compile

    def keeping(*arguments: Any, **options: Any) -> Any:
        compiled.append(compile_(*arguments, **options))
        return compiled[-1]

    # What Inductor's compile workers do: they have no device either.
    with mock.patch.object(triton, "compile", keeping):
        kernel.precompile(warm_cache_only=True)
    made = compiled[0]
    said = _ptxas(made.asm["ptx"])
    warps = int(made.metadata.num_warps)
    registers = _first(_REGISTERS, said)
    shared = max(int(made.metadata.shared), _first(_STATIC_SHARED, said))
    held = occupancy(target, warps, registers, shared)
    return Assembled(registers, _first(_SPILLED, said), shared, warps, held.share, held.limited_by)


def _kernel(file: Path, name: str) -> Any:
    """The kernel of a file. Triton reads the source of a kernel from its file.

    torch replaces a placeholder by the name, or not yet, or adds a number to that of a kernel of
    the model's own.
    """
    found = runpy.run_path(str(file), run_name=f"assembled_{file.stem}")
    names = (name, name.rpartition("_")[0], "triton_")
    return next(found[each] for each in names if each in found)


def _ptxas(ptx: str) -> str:
    """What ptxas says about a kernel.

    Newer versions of Triton bring two, and take the newer one (``ptxas-blackwell``) for more and
    more architectures: the one that knows the version of the PTX is taken.
    """
    import triton

    programs = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    architecture = _ARCHITECTURE.search(ptx)
    if architecture is None:
        raise ValueError("the PTX names no architecture")
    said = "Triton brings no ptxas"
    with tempfile.TemporaryDirectory(prefix="ptxas-") as place:
        file, cubin = Path(place, "kernel.ptx"), Path(place, "kernel.cubin")
        file.write_text(ptx)
        for program in sorted(programs.glob("ptxas*")):
            done = run([program, "-v", f"--gpu-name={architecture[1]}", file, "-o", cubin])
            said = done.stdout + done.stderr
            if done.returncode == 0:
                return said
    raise ValueError(f"ptxas: {(said.strip().splitlines() or ['no message'])[0]}")


def _first(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


class Occupancy(NamedTuple):
    """The share of the warps that are held at once, and what keeps it below 1 (empty at 1)."""

    share: float
    limited_by: str


def occupancy(target: Target, warps: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of a kernel.

    ``warps`` of a block, ``registers`` of a thread, ``shared_bytes`` of a block. The share is 0 if
    not even one block fits. Raises ValueError for less than one warp.
    """
    if warps < 1:
        raise ValueError(f"a block has at least one warp, not {warps}")
    most_warps = target.threads_a_multiprocessor // WARP
    shared = _up(shared_bytes + target.shared_reserved, target.shared_unit)
    blocks = {
        "warps": most_warps // warps,
        "blocks": target.blocks_a_multiprocessor,
        "registers": _by_registers(target, warps, registers),
        "shared memory": target.shared_a_multiprocessor // shared if shared else most_warps,
    }
    if shared_bytes > target.shared_a_block:
        blocks["shared memory"] = 0
    least = min(blocks.values())
    share = min(1.0, least * warps / most_warps)
    limit = min(blocks, key=lambda name: blocks[name])
    return Occupancy(round(share, 4), "" if share == 1.0 else limit)


def _by_registers(target: Target, warps: int, registers: int) -> int:
    """Blocks for whose registers there is room."""
    if registers == 0:
        return target.threads_a_multiprocessor
    of_a_warp = _up(registers * WARP, REGISTER_UNIT)
    # Each of the four schedulers has a quarter of the registers.
    held = target.registers_a_multiprocessor // of_a_warp
    return held // WARP_UNIT * WARP_UNIT // warps


def _up(value: int, unit: int) -> int:
    """The value, rounded up to whole units."""
    return -(-value // unit) * unit
