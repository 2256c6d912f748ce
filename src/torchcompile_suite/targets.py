"""The GPUs that code is generated for without being here: ``targets.toml``, with its sources.

Nothing here imports torch. A target is a description: what the compiler asks a device, and what the
occupancy of a kernel depends on. No figure of it is a time.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from .errors import SuiteError

FILE = Path(__file__).with_name("targets.toml")
WARP = 32
"""Threads of a warp, on every NVIDIA GPU."""
REGISTER_UNIT = 256
"""Registers are handed out to a warp in this unit, from compute capability 3.0 on."""
WARP_UNIT = 4
"""The schedulers of a multiprocessor, each with a quarter of its registers."""

Size = Annotated[int, Meta(ge=1, le=2**50)]


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU. Sizes in bytes; the shared memory of a block is the most that it may opt in to.

    ``shared_unit``, ``shared_reserved``: how shared memory is handed out to a block, and what the
    system takes of it.
    """

    name: str
    device: str
    major: Annotated[int, Meta(ge=7, le=99)]
    minor: Annotated[int, Meta(ge=0, le=9)]
    multiprocessors: Size
    threads_a_multiprocessor: Size
    blocks_a_multiprocessor: Size
    registers_a_multiprocessor: Size
    shared_a_multiprocessor: Size
    shared_a_block: Size
    shared_unit: Size
    shared_reserved: Annotated[int, Meta(ge=0)]
    l2_bytes: Size
    memory_bytes: Size
    memory_clock_khz: Size
    memory_bus_bits: Size

    @property
    def capability(self) -> int:
        """The compute capability as one number, such as 90."""
        return self.major * 10 + self.minor


@cache
def read() -> dict[str, Target]:
    """All targets by name, in the order of ASV's axis."""
    targets = msgspec.toml.decode(FILE.read_bytes(), type=dict[str, list[Target]])["target"]
    return {target.name: target for target in targets}


def get(name: str) -> Target:
    """The target of that name. Raises SuiteError, which lists the known names."""
    try:
        return read()[name]
    except KeyError:
        raise SuiteError(f"no target {name!r}; there are: {', '.join(read())}") from None
