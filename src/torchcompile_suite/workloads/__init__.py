"""What gets compiled: a registry of workloads, one file for each family or two.

A file in this folder registers its workloads with `workload`. Benchmarks, tests and pages ask
`names` and `get`, so a new file needs no other change. Such a file imports torch inside functions
only, because ASV discovers benchmarks by importing this package. A file whose name begins with an
underscore registers nothing, and may import torch.

The variable ``TORCHCOMPILE_SUITE_WORKLOADS`` adds files from outside the package (paths, joined as
in PATH). An installed package adds a module with an entry point of the group
``torchcompile_suite.workloads``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from ..errors import SuiteError
from ..fields import Name

if TYPE_CHECKING:
    import torch

    Inputs = tuple[Any, ...] | dict[str, Any]
    Built = tuple[torch.nn.Module, Inputs]
    Build = Callable[[int], Built]
    Several = Callable[[int], Sequence[Inputs]]
    F = TypeVar("F", bound=Build)


TAGS = {
    "inference": "the default mode at batch 1; every workload has this tag",
    "eager": "eager against eager at batch 1: the noise floor",
    "reduce-overhead": "that mode at batch 1",
    "max-autotune": "that mode at batch 1",
    "batch5": "max-autotune at batch 5",
    "batch8": "the default mode at batch 8",
    "training": "a training step in float32",
    "training_variants": "a training step in bfloat16, and one with gradient accumulation",
    "precision": "bfloat16 in eager",
    "precision_compiled": "bfloat16 compiled",
    "dynamic_shapes": "a stream of shapes; needs `stream`",
    "backends": "the backends of torch.compile",
    "protocol": "the classic timing mistakes",
    "allocator": "other allocators",
    "default_heap": "malloc with its defaults, and memory",
    "freezing": "the weights as constants of the generated code",
    "freezing_memory": "the same, with malloc as it comes, for the memory",
    "regional": "the repeated block compiled once; needs equal blocks in the module",
    "guards": "changes of the inputs that cause a recapture",
    "tracing": "other capture methods; needs `cases`",
    "overhead": "what a call costs beyond its kernels",
    "attention": "attention, written in several ways",
    "quantisation": "int8 in eager and compiled; needs linear layers",
    "starts": "cold starts: whole processes, each to its first result",
    "memory_over_time": "memory over thousands of calls; changing shapes need `stream`",
}
"""What a workload can take part in; `torchcompile_suite.matrix` makes cells of the tags."""

MADE_FOR = {
    "vit": "sizes of a transformer",
    "neural_operator": "neural operators",
    "relevance": "scorers",
    "fusion": "fusion",
    "linear": "fusion",
    "control_flow": "control flow",
    "overhead": "overhead",
    "attention": "attention",
}
"""Family -> the question that its workloads were made for. They are no models that people use: the
answer on inference leaves them out of its mean."""

# Tag -> the argument of `workload` without which the tag makes no sense.
_NEEDED = {"dynamic_shapes": "stream", "tracing": "cases"}


class Workload(NamedTuple):
    """A named factory of a module and its example inputs.

    - ``build(batch_size)`` returns ``(module, inputs)`` on the CPU in float32. The module is called
      as ``module(*inputs)``, or as ``module(**inputs)`` if the inputs are a dict. The caller seeds
      torch before the call and moves module and inputs to the device afterwards.
    - ``imports``: the libraries that ``build`` needs. A process imports them first.
    - ``core``, ``also``: the `TAGS` of the workload. A bare ``asv run`` measures the tags of
      ``core``.
    - ``cases(batch_size)``: more inputs, for which the compiled module must be right, too.
    - ``stream(batch_size)``: inputs of different shapes, one request after another.
    - ``foreign``: a user's model: each launch first finds out how it has to be called.
    """

    name: str
    family: str
    build: Build
    imports: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    cases: Several | None = None
    stream: Several | None = None
    foreign: bool = False

    def has_tag(self, tag: str) -> bool:
        """Whether the workload takes part in what the tag names."""
        return tag == "inference" or tag in self.core or tag in self.also


VARIABLE = "TORCHCOMPILE_SUITE_WORKLOADS"
ENTRY_POINTS = "torchcompile_suite.workloads"


class WorkloadError(SuiteError):
    """A workload file cannot be used, or a workload does not exist. The message says which."""


_registry: dict[str, Workload] = {}
_streams: dict[str, Several] = {}


def workload(
    name: str,
    *,
    family: str,
    imports: tuple[str, ...] = (),
    core: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    cases: Several | None = None,
    stream: Several | None = None,
    foreign: bool = False,
) -> Callable[[F], F]:
    """Register the decorated ``build(batch_size)`` under a name that never changes.

    The arguments are the fields of `Workload`. Raises ValueError if the name is taken, because two
    workloads would share one series, if no cell can have it, and if a tag does not exist or lacks
    what it needs.
    """

    def register(build: F) -> F:
        if name in _registry:
            raise ValueError(f"workload {name!r} is registered twice; choose another name")
        try:
            msgspec.convert(name, Name)
        except msgspec.ValidationError:
            raise ValueError(
                f"workload {name!r}: use at most 80 letters, digits, '.', '_' and '-', and begin "
                "with a letter or a digit"
            ) from None
        if unknown := {*core, *also} - TAGS.keys():
            raise ValueError(
                f"workload {name!r}: no tag {', '.join(sorted(unknown))}; "
                f"there are: {', '.join(sorted(TAGS))}"
            )
        registered = Workload(name, family, build, imports, core, also, cases, stream, foreign)
        for tag, needed in _NEEDED.items():
            if registered.has_tag(tag) and getattr(registered, needed) is None:
                raise ValueError(f"workload {name!r}: the tag {tag} needs {needed}=")
        _registry[name] = registered
        return build

    return register


def give_stream(name: str, stream: Several) -> None:
    """Let a workload have a stream of shapes, also one of a file that is read later."""
    _streams[name] = stream
    if name in _registry:
        _registry[name] = _registry[name]._replace(stream=stream)


@cache
def _all() -> dict[str, Workload]:
    """The registry, after all files are imported."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    for path in files():
        _load_file(path)
    for name, stream in list(_streams.items()):
        give_stream(name, stream)
    return _registry


def files() -> list[Path]:
    """The workload files outside the package: first the variable's, then those of entry points.

    An entry point counts as the file of its module: a benchmark's process runs in a release's
    environment, and the user's package is not installed there. Raises WorkloadError for an entry
    point without a module, or whose package does not import.
    """
    paths = [Path(text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    for point in metadata.entry_points(group=ENTRY_POINTS):
        try:
            spec = importlib.util.find_spec(point.module)  # imports the packages around it
        except Exception as error:
            raise WorkloadError(
                f"entry point {point.name}: {point.module} does not import "
                f"({type(error).__name__}: {error}); mend or uninstall its package"
            ) from None
        if spec is None or spec.origin is None:
            raise WorkloadError(f"entry point {point.name}: there is no module {point.module}")
        paths.append(Path(spec.origin))
    # The variable may name the file of an entry point, by another path.
    return list({path.resolve(): path for path in paths}.values())


def listed_files() -> str:
    """`files` as the text of `VARIABLE`, for processes in other folders. Raises as `files`."""
    return os.pathsep.join(str(path.absolute()) for path in files())


def _load_file(path: Path) -> None:
    name = f"torchcompile_suite_workloads_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise WorkloadError(f"{VARIABLE} names {path}, which is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # What a file prints is no answer of a command.
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except Exception as error:
        raise WorkloadError(
            f"the workload file {path} fails: {type(error).__name__}: {error}"
        ) from None


def names() -> list[str]:
    """The names of all registered workloads, in the order of the families' files."""
    return list(_all())


def tagged(tag: str) -> list[str]:
    """The names of the workloads that have the tag, one of `TAGS`."""
    return [workload.name for workload in _all().values() if workload.has_tag(tag)]


def get(name: str) -> Workload:
    """The workload of that name. Raises WorkloadError, which lists the known names."""
    known = _all()
    if name not in known:
        raise WorkloadError(f"no workload {name!r}; there are: {', '.join(known)}")
    return known[name]


def made_for(name: str) -> str:
    """The question that the workload was made for (`MADE_FOR`); empty for a model, as a user's."""
    known = _all().get(name)
    return MADE_FOR.get(known.family, "") if known else ""


def libraries(name: str) -> tuple[str, ...]:
    """The libraries that the workload needs; empty for a user's, which is not registered here."""
    known = _all().get(name)
    return known.imports if known else ()


def library(name: str) -> Any:
    """The module of a library that models are from; in a release's environment it may lie apart
    (`releases.apart`).

    Raises WorkloadError if it is not beside this torch, or if this process has imported another
    version of what it needs.
    """
    # Imported here: what asks for no library needs none of it.
    from ..releases import stamp

    apart = stamp.apart(name)
    if name not in sys.modules and apart.is_dir():
        if known := sys.modules.keys() & {one.name.partition(".")[0] for one in apart.iterdir()}:
            others = ", ".join(sorted(known))
            raise WorkloadError(f"{name} has its own {others}, and others are imported already")
        sys.path.insert(0, str(apart))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise WorkloadError(
            f"this model is from {name}, which is not installed beside this torch: "
            f"pip install {name}"
        ) from None


def imports() -> list[str]:
    """The libraries that the registered workloads need, each once."""
    return sorted({name for workload in _all().values() for name in workload.imports})
