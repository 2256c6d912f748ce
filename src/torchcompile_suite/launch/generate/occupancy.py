"""How many warps of a kernel a multiprocessor holds at once, and what limits them.

The rules are those of NVIDIA's occupancy calculator; ``targets.toml`` names the sources.
"""

from __future__ import annotations

from typing import NamedTuple

from ...targets import REGISTER_UNIT, WARP, WARP_UNIT, Target


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
