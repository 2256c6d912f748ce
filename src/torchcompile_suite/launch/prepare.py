"""Before a service starts, and after its first result: cold starts (`Cell.start`).

A cold start is a whole process (`service`), from its start to its first result. `prepare` makes
what services find when they start: it stands for the process of an earlier day, or of the machine
that builds the image. It makes the cache, the artefacts or the package, with each release's own
functions, 2.4 to 2.15, and writes the weights, the first request, and the result that is expected
of it. Sources: ``torch/_inductor/__init__.py``, ``torch/compiler/__init__.py`` and
``torch/compiler/precompile.py`` of the releases.

`checked` and `failed` are the end of a service, when no clock runs.
"""

from __future__ import annotations

import inspect
import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import torch

from .. import workloads
from ..cell import Cell
from ..host.files import write_atomically
from ..measurement import OK, Accuracy, Launch, Outcome
from ..modes import EAGER, MODES
from ..request import Request
from . import accuracy, caches, checks, device, failures, foreign, messages, references
from .build import build
from .messages import ARTEFACTS, EXPECTED, INPUTS, PREPARED, WEIGHTS, Prepared, Service
from .progress import Stages
from .subject import SEED, Subject, apply, of_release
from .values import other_dtype, parts


def prepare(request: Request) -> Launch:
    """Fill the folder that holds the request's cache folder. `messages` names the files.

    Returns a launch without pairs. Never raises for what the cell does: a failure is the launch's
    outcome.
    """

    def work(on: device.Device, stages: Stages) -> dict[str, Any]:
        _prepare(request.cell, Path(request.cache_dir), on, stages)
        return {}

    # The service describes the environment. A failure is that of a release, too.
    return device.launched(
        request, "preparing: ", work, describing=False, preloaded=[], heap="default"
    )


def _prepare(cell: Cell, cache: Path, on: device.Device, stages: Stages) -> None:
    if reason := _unsupported(cell):
        raise failures.Unsupported(reason)
    folder = cache.parent
    (folder / ARTEFACTS).mkdir()
    with stages("build"):
        subject = build(msgspec.structs.replace(cell, start=""))
        # The state that a service starts from: calls come later.
        subject.reset()
        if workloads.get(cell.workload).foreign:
            notes = foreign.learn(subject, steady=False)
            if subject.gradients != "inference" or subject.fresh_inputs:
                raise failures.Unsupported(
                    f"cold starts of such a model are not measured: {'; '.join(notes)}"
                )
            subject.reset()
        torch.save(subject.module.state_dict(), folder / WEIGHTS)
        torch.save(subject.inputs, folder / INPUTS)
    with stages("compile"):
        loader = _make(cell, subject, on, folder / ARTEFACTS)
    artefact_bytes = None
    if cell.start == "disk-cache":
        artefact_bytes = caches.size(cache)
    elif loader:
        artefact_bytes = caches.size(folder / ARTEFACTS)
    with stages("reference"), subject.context():
        torch.save(references.first_result(subject), folder / EXPECTED)
    prepared = Prepared(torch.get_num_threads(), SEED, loader, artefact_bytes)
    write_atomically(folder / PREPARED, msgspec.json.encode(prepared))


def _make(cell: Cell, subject: Subject, on: device.Device, folder: Path) -> str:
    """Make what the start needs. Returns the name of the function that loads it, or ""."""
    if cell.start == "uncached":
        return ""
    if cell.start == "aot-package":
        return _package(subject.module, subject.inputs, folder)
    if cell.start == "precompile":
        with subject.context():
            return _precompiled(subject.module, subject.inputs, folder)
    carried = cell.start == "carried-cache"
    if carried:
        of_release(torch.compiler, "save_cache_artifacts")  # since 2.7
    with subject.context():
        call, _ = subject.compile()
        call()
        on.synchronize()
    return _carried_caches(folder) if carried else ""


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


def _carried_caches(folder: Path) -> str:
    """Save the caches of this process, which has compiled."""
    saved = torch.compiler.save_cache_artifacts()
    if saved is None:
        raise failures.Unsupported("torch has nothing to carry: what was compiled is not cached")
    Path(folder, "cache.bin").write_bytes(saved[0])
    return "torch.compiler.load_cache_artifacts"


def _package(module: torch.nn.Module, inputs: Any, folder: Path) -> str:
    """Compile ahead of time with AOTInductor. The package contains the weights.

    2.4 has no package, but the library that a package contains. In 2.5 the arguments of the
    function are the example inputs; later releases know them from the exported program.
    """
    arguments, options = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    import torch._inductor

    with torch.no_grad():
        if not hasattr(torch._inductor, "aoti_compile_and_package"):
            from torch._export import aot_compile

            library = {"aot_inductor.output_path": str(folder / "model.so")}
            aot_compile(module, arguments, options or None, options=library)
            return "torch._export.aot_load"
        exported = torch.export.export(module, arguments, options)
        compile_and_package = torch._inductor.aoti_compile_and_package
        knows_inputs = (
            "_deprecated_unused_args" in inspect.signature(compile_and_package).parameters
        )
        given = () if knows_inputs else (arguments, options)
        compile_and_package(exported, *given, package_path=str(folder / "model.pt2"))
    return "torch._inductor.aoti_load_package"


def _precompiled(module: torch.nn.Module, inputs: Any, folder: Path) -> str:
    """Compile ahead of time with `torch.compiler.precompile`, or with what came before it.

    From 2.9 until there was `torch.compiler.precompile`, a function of torch.compile has
    ``aot_compile``. In 2.9 it is behind a setting.
    """
    import torch._dynamo

    precompile = getattr(torch.compiler, "precompile", None)
    if hasattr(precompile, "capture"):
        files = {"artifact_path": folder / "model.py", "cache_path": folder / "model.cache"}
        with precompile.capture(apply, **files) as capture:  # type: ignore[union-attr]
            capture(module, inputs)
        return "torch.compiler.precompile.load"
    config = torch._dynamo.config
    if not (
        hasattr(torch.compiler, "load_compiled_function") and hasattr(config, "enable_aot_compile")
    ):
        raise failures.Unsupported(
            f"torch {torch.__version__} has neither torch.compiler.precompile nor "
            "torch.compile(...).aot_compile"
        )
    example = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with config.patch(enable_aot_compile=True):
        compiled = torch.compile(module.forward, fullgraph=True).aot_compile(example)
    compiled.save_compiled_function(str(folder / "model.bin"))
    return "torch.compiler.load_compiled_function"


def checked(connection: int, order: dict[str, Any], result: Any) -> None:
    """Wait for the driver. Then compare the first result, and say what this process knows."""
    talk = Connection(connection)
    messages.decode_asked(talk.recv_bytes())  # messages.Finish
    told = msgspec.convert(order, Service)
    outcome, compared = OK, None
    try:
        _captured(told)
        first = torch.load(Path(told.folder, EXPECTED), weights_only=False)
        compared, reason = judged(first, result)
        if reason:
            raise failures.WrongResult(reason)
    except Exception as error:
        outcome = failures.outcome(error, "accuracy")
    described = device.describe(device.get(told.device), os.getloadavg()[0])
    _end(talk, told, outcome, accuracy=compared, environment=described)


def judged(first: references.FirstResult, result: Any) -> tuple[Accuracy, str]:
    """The comparison with the expected result, and why the result is wrong; empty if it is not."""
    made = parts(result)
    tolerance = first.tolerance or accuracy.TOLERANCE["float32"]
    compared = accuracy.compare(
        first.eager, made, first.expected, first.reference, tolerance, first.random
    )
    compared = checks.noted(compared, first.note) if first.note else compared
    if other := other_dtype(made, first.eager):
        return compared, f"the output has the dtype {other}"
    if tolerance > accuracy.MULTIPLE * accuracy.LARGEST_OWN:  # of eager's own noise
        nothing = Accuracy(first.reference, None, None, accuracy.TOLERANCE["float32"])
        why = "with the same seed and the same state, eager differs from itself"
        return checks.unchecked(nothing, why), ""
    if first.random and checks.shows_nothing(compared, first.expected):
        why = "a random function, and one draw beside another shows nothing"
        return checks.unchecked(compared, why), ""
    reason, own = accuracy.wrong(compared), compared.eager_error or 0.0
    if not reason and own > accuracy.LARGEST_OWN and not first.random:
        return checks.unchecked(compared, checks.moved(own)), ""
    if reason and first.otherwise:
        eager, mode = (references.Played([one], [], []) for one in (first.eager, made))
        if references.chosen_alike(eager, mode, first.otherwise):
            return checks.unchecked(compared, checks.CHOSEN), ""
    return compared, reason


def failed(connection: int, order: dict[str, Any], error: Exception, stage: str) -> None:
    """Say that there is no first result. ``stage``: as in `failures.outcome`."""
    told = msgspec.convert(order, Service)
    _end(Connection(connection), told, failures.outcome(error, stage))


def _captured(told: Service) -> None:
    """Raise `failures.Unsupported` if the service had to compile, and Dynamo captured nothing."""
    if told.start in ("uncached", "disk-cache", "carried-cache"):
        # The compiler is imported: the first call has used it.
        from .inspect import dynamo

        if not dynamo.captures():
            raise failures.Unsupported(dynamo.NO_GRAPH)


def _end(talk: Connection, told: Service, outcome: Outcome, **known: Any) -> None:
    """Say what is known of the launch. ``known``: further fields."""
    launch = Launch(told.kind, outcome, preloaded=[], heap="default", **known)
    talk.send_bytes(messages.encode(messages.Ended(launch)))
