"""What a service is told, and the files that are prepared for it. Nothing here imports torch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...cell import Start
from ...fields import Count

SERVICE = "torchcompile_suite.launch.starts.service"

# In the folder of a cell. `PREPARED` is written last.
PREPARED = "prepared.json"
# The number of launches that were made from the folder.
LAUNCHES = "launches"
# The cache folder of the process that prepares; a service with ``disk-cache`` has the same one.
CACHE = "cache"
WEIGHTS, INPUTS, EXPECTED = "weights.pt", "inputs.pt", "expected.pt"
# A folder: what is loaded by a service.
ARTEFACTS = "artefacts"


class Prepared(Struct, frozen=True):
    """What was prepared.

    ``threads``: those that torch uses. ``seed``: with which the model was built. The rest is as in
    `cell.Started`.
    """

    threads: Count
    seed: int
    loader: str = ""
    artefact_bytes: Count | None = None


class Service(Struct, frozen=True):
    """The order of a service, which reads it as plain JSON.

    - ``start``: empty for eager.
    - ``folder``: what was prepared. ``loader``: the function that loads from it.
    - ``kind``: of the launch.
    """

    workload: str
    batch_size: int
    mode: str
    device: str
    start: Start
    seed: int
    folder: str
    loader: str
    kind: Literal["cold", "warm"]
