"""A cell: what is compiled, how, and for which device."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from .fields import Name
from .modes import EAGER

Shapes = Literal[
    "static", "recompile", "automatic", "dynamic", "marked", "buckets", "unbacked", "oblivious"
]
Protocol = Literal[
    "right", "data-inside", "no-sync", "grad-on", "train-mode", "many-calls", "divided"
]
Way = Literal["whole", "freezing", "regional", "nested-region", "as-given"]
Layout = Literal["contiguous", "channels-last"]
Start = Literal["", "uncached", "disk-cache", "carried-cache", "aot-package", "precompile"]
# A GPU of `targets`, such as cuda:sm90; empty for the device of the machine.
TargetName = Annotated[str, Meta(max_length=40, pattern=r"^([a-z]+:[a-z0-9]+)?\Z")]
MOST_BATCH = 1_000_000
"""The largest batch size of a cell."""
DEFAULT_HEAP = "default-heap"
"""The value of `Cell.allocator` for the C library's malloc as a script gets it."""
AUTOCAST = ("bfloat16", "float16")
"""The values of `Cell.dtype` for an autocast region around the call."""
WEIGHTS = {"bfloat16-weights": "bfloat16", "float16-weights": "float16"}
"""The values of `Cell.dtype` for weights and inputs in another dtype, with torch's name of it."""
TF32 = "tf32"
"""The value of `Cell.dtype` for float32 whose products and convolutions a GPU makes in TF32."""
CHANNELS_LAST: Literal["channels-last"] = "channels-last"
"""The value of `Cell.layout` for images whose channels lie beside each other in memory."""
QUANTISATIONS = ("int8-dynamic", "int8-weight-only")
"""The values of `Cell.dtype` for which the weights of linear layers are quantised (torchao). With
the first one, each call also quantises the layers' inputs."""


class Cell(Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    """One point of the matrix: a workload, how it is compiled, and what it is compared with.

    - ``device``: the accelerator's kind as torch spells it (``cpu``, ``cuda``).
    - ``dtype``: float32, the dtype of the autocast region around the call (`AUTOCAST`), of the
      weights (`WEIGHTS`), `TF32`, or a quantisation of the weights (`QUANTISATIONS`).
    - ``shapes``: ``static`` means that the input's shape never changes. The other values call the
      workload's stream of shapes (`torchcompile_suite.launch.stream.ShapeStream`).
    - ``backend``: the backend of torch.compile. Any name: `try` also takes backends of the user's.
    - ``allocator``: the malloc of the processes. ``system``: the C library's, told to keep its
      memory (a settled heap, `torchcompile_suite.host.heap`). `DEFAULT_HEAP`: the C library's with
      its defaults. ``libc``: the same, beside preloaded ones. Else the name of a preloaded one.
    - ``protocol``: ``right``, or the timing mistake that the measurement makes on purpose. With
      ``many-calls``, the memory of the process is recorded over thousands of calls. With
      ``divided``, a call is divided among operators and kernels (`Attribution`), and no pair is
      timed.
    - ``baseline``: the other call of each pair, eager in the same dtype or in float32.
    - ``accumulation``: micro-batches of a training step.
    - ``target``: a GPU that is not here (`torchcompile_suite.targets`). Then nothing is timed: the
      compiler generates code for it, which is counted (`Generated`).
    - ``way``: what is compiled: the ``whole`` module; the same with its weights as constants
      (``freezing``); the block that the module repeats, once (``regional``); the whole module with
      the block as a region that is compiled once (``nested-region``); or what the user's code
      compiles, whatever the cell's mode (``as-given``).
    - ``start``: what a process finds when it starts. Then a pair is two whole processes, each from
      its start to its first result. Empty for a cell whose calls are timed.
    - ``layout``: of weights and inputs with four dimensions in memory.

    The fields with defaults are axes. Their defaults are the plain inference cell.
    """

    workload: Name
    batch_size: Annotated[int, Meta(ge=1, le=MOST_BATCH)]
    mode: Name
    phase: Literal["inference", "training"] = "inference"
    dtype: Name = "float32"
    device: Name = "cpu"
    shapes: Shapes = "static"
    backend: Name = "inductor"
    allocator: Name = "system"
    protocol: Protocol = "right"
    baseline: Name = "eager"
    accumulation: Annotated[int, Meta(ge=1, le=1000)] = 1
    target: TargetName = ""
    way: Way = "whole"
    start: Start = ""
    layout: Layout = "contiguous"

    @property
    def timed(self) -> bool:
        """Whether pairs of turns are timed."""
        return not self.target and not self.divided

    @property
    def divided(self) -> bool:
        """Whether a call is divided among operators and kernels."""
        return self.protocol == "divided"

    @property
    def quantised(self) -> bool:
        """Whether the weights of the module are quantised."""
        return self.dtype in QUANTISATIONS

    def differs(self) -> frozenset[str]:
        """The axes on which the cell is not the plain inference cell of its mode.

        The device is no such axis: it belongs to the machine.
        """
        return frozenset(name for name, plain in _PLAIN.items() if getattr(self, name) != plain)

    @property
    def asks_whether_it_pays(self) -> bool:
        """Whether it compares a compiled model with eager, and both run as a user runs them.

        False for cells that analyse a gain (another backend, a mistaken protocol), and for cells
        that compare something else (dtypes, allocators, streams of shapes).
        """
        return self.mode != EAGER and self.differs() <= {"phase", "dtype", "accumulation", "layout"}

    @property
    def variant(self) -> str:
        """How the cell differs from the plain inference cell, in words; empty for the plain one."""
        differs = self.differs()
        return ", ".join(
            f"{self.accumulation} micro-batches"
            if name == "accumulation"
            else str(getattr(self, name))
            for name in _PLAIN
            if name in differs
        )

    def __str__(self) -> str:
        """A short name for people: workload, batch size, mode, and the differences."""
        return ", ".join(
            filter(None, (self.workload, f"batch {self.batch_size}", self.mode, self.variant))
        )


# Axis -> its value in the plain inference cell, in the order of the fields. A new axis is in here
# by itself.
_PLAIN = {
    axis.name: axis.default
    for axis in msgspec.structs.fields(Cell)
    if not axis.required and axis.name != "device"
}
