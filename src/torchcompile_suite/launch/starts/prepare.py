"""The process that makes what services find when they start: `prepare`.

It stands for the process of an earlier day, or of the machine that builds the image: the cache, the
artefacts or the package are made here. It also writes the weights and the first request, and the
result that is expected of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import torch

from ... import workloads
from ...cell import Cell
from ...conditions import Environment
from ...host.files import write_atomically
from ...measurement import OK, Launch
from ...modes import EAGER, MODES
from ...request import Request
from .. import caches, device, environment, failures, foreign, references
from ..build import build
from ..stages import Stages
from ..subject import SEED, Subject
from .orders import ARTEFACTS, EXPECTED, INPUTS, PREPARED, WEIGHTS, Prepared


def prepare(request: Request) -> Launch:
    """Fill the folder that holds the request's cache folder. `orders` names the files.

    Returns a launch without pairs. Never raises for what the cell does: a failure is the launch's
    outcome.
    """
    load = os.getloadavg()[0]
    stages = Stages(str(request.cell), "preparing: ")
    described: Environment | None = None
    usable: device.Device | None = None
    try:
        with stages("prepare"):
            on = device.get(request.cell.device)
            on.need()
            usable = on
            if reason := _unsupported(request.cell):
                raise failures.Unsupported(reason)
        _prepare(request, Path(request.cache_dir), on, stages)
        outcome = OK
    except Exception as error:
        outcome = failures.outcome(error, stages.now)
    if not outcome.ok and usable is not None:
        # Else the service describes it. A failure is that of a release, too.
        described = environment.describe(usable, load)
    return Launch(
        request.kind,
        outcome,
        stages_s=stages.seconds,
        environment=described,
        preloaded=[],
        heap="default",
    )


def _prepare(request: Request, cache: Path, on: device.Device, stages: Stages) -> None:
    cell, folder = request.cell, cache.parent
    (folder / ARTEFACTS).mkdir()
    with stages("build"):
        subject = build(msgspec.structs.replace(cell, start=""))
        if workloads.get(cell.workload).foreign:
            notes = foreign.learn(subject, steady=False)
            if subject.gradients != "inference" or subject.fresh_inputs:
                raise failures.Unsupported(
                    f"cold starts of such a model are not measured: {'; '.join(notes)}"
                )
        torch.save(subject.module.state_dict(), folder / WEIGHTS)
        torch.save(subject.inputs, folder / INPUTS)
        # The state that a service starts from: calls come later.
        subject.reset()
    with stages("compile"):
        loader = _make(cell, subject, on, folder / ARTEFACTS)
    artefact_bytes = None
    if cell.start == "disk-cache":
        artefact_bytes = caches.size(cache)
    elif loader:
        artefact_bytes = caches.size(folder / ARTEFACTS)
    with stages("reference"), subject.context():
        eager, expected, reference, random = references.first_result(subject)
        torch.save((eager, expected, reference, random), folder / EXPECTED)
    prepared = Prepared(torch.get_num_threads(), SEED, loader, artefact_bytes)
    write_atomically(folder / PREPARED, msgspec.json.encode(prepared))


def _make(cell: Cell, subject: Subject, on: device.Device, folder: Path) -> str:
    """Make what the start needs. Returns the name of the function that loads it, or ""."""
    if cell.start == "uncached":
        return ""
    # Imports the compiler.
    from ..inspect.versions import starts

    if cell.start == "aot-package":
        return starts.package(subject.module, subject.inputs, folder)
    if cell.start == "precompile":
        with subject.context():
            return starts.precompiled(subject.module, subject.inputs, folder)
    if cell.start == "carried-cache":
        starts.need_carried_caches()
    with subject.context():
        call, _ = subject.compile()
        call()
        on.synchronize()
    return starts.carried_caches(folder) if cell.start == "carried-cache" else ""


def _unsupported(cell: Cell) -> str:
    """Why no start of such a cell is measured, or the empty string."""
    others = msgspec.structs.replace(cell, start="").variant
    if others:
        return f"a cold start is measured for inference in float32 with Inductor, not for {others}"
    if cell.mode == EAGER or cell.mode not in MODES:
        return f"a start is paired with eager: name a mode of torch.compile, not {cell.mode}"
    if cell.mode != "default" and cell.start in ("aot-package", "precompile"):
        return f"{cell.start} takes no mode of torch.compile"
    return ""
