"""What the process that generates code is asked for. Nothing here imports torch."""

from __future__ import annotations

import msgspec

from ...cell import Cell

MODULE = "torchcompile_suite.launch.generate"
# Names the target of the process: one of `targets`.
TARGET_VARIABLE = "TORCHCOMPILE_SUITE_GPU"


class Order(msgspec.Struct, frozen=True):
    """Generate code for the cell.

    - ``assemble``: also registers, spills, shared memory and occupancy of each Triton kernel: half
      a second for each.
    - ``folder``: an existing folder that gets the code; empty for none.
    """

    cell: Cell
    assemble: bool = False
    folder: str = ""
