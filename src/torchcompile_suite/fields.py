"""Types of the fields of everything that crosses a process or a machine.

Nothing here and in the modules beside it imports torch or asv, so results can be read on any
machine. All types are ``msgspec`` structs. Decoding checks types and bounds: a foreign or damaged
file is refused with a reason, and no half-valid object is made from it.

Units are part of the field names: ``_s`` seconds, ``_bytes`` bytes. Where an attribute has another
name than its JSON field, the JSON field keeps the name under which results are published.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

SCHEMA: Literal[17] = 17
"""Version of the JSON that crosses processes and machines, the ``schema`` field of each struct.
A reader refuses a newer version and reads all older ones: each version added fields with defaults.
Version 13 added what an accelerator says of itself and during a measurement (`Accelerator`,
`DeviceState`), the latency of a single call, allocated memory, and `Environment.adopted`. Version
14 added `Attribution`, 15 `HostState`, 16 its pairs elsewhere, and 17 crowded cores."""
# Patterns end in \Z: a $ also matches before a newline at the end.
Name = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*\Z")]
Text = Annotated[str, Meta(max_length=4000)]
Seconds = Annotated[float, Meta(ge=0, le=1e7)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
# Kept short: the analysis is quadratic.
Samples = Annotated[list[Count], Meta(max_length=200)]
Schema = Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]
