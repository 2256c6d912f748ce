"""What gets compiled: a registry of workloads, one file a family.

A file in this folder registers its workloads with `workload` and needs no other mention
anywhere: benchmarks, tests and pages ask `names` and `get`. Such a file imports torch inside its
functions only, because ASV discovers benchmarks by importing this package.

Files outside the package take part when ``TORCHCOMPILE_SUITE_WORKLOADS`` names them (paths, joined
as in PATH), and modules of installed packages through an entry point of the group
``torchcompile_suite.workloads``.
"""

from __future__ import annotations

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

from ..errors import SuiteError

if TYPE_CHECKING:
    import torch

    Inputs = tuple[Any, ...] | dict[str, Any]
    Built = tuple[torch.nn.Module, Inputs]
    Build = Callable[[int], Built]
    Several = Callable[[int], Sequence[Inputs]]
    F = TypeVar("F", bound=Build)


QUESTIONS = frozenset(
    (
        "inference",  # every workload takes part in this one
        "eager",  # against itself: the noise floor
        "reduce-overhead",
        "max-autotune",
        "batch5",
        "batch8",
        "training",
        "training_variants",  # in bfloat16, and with gradient accumulation
        "precision",
        "precision_compiled",  # bfloat16 compiled, and not only eager
        "dynamic_shapes",
        "backends",
        "protocol",
        "allocator",
        "guards",
        "tracing",
    )
)
"""What a workload can be measured for; `torchcompile_suite.matrix` makes cells of them."""


class Workload(NamedTuple):
    """A named factory of a module and its example inputs.

    - ``build(batch_size)`` returns ``(module, inputs)`` on the CPU in float32, the module called
      as ``module(*inputs)``, or ``module(**inputs)`` where they are a dict. The caller seeds torch
      before and moves both after.
    - ``imports``: the libraries that building needs, so that a fork server can import them once.
    - ``core`` and ``also``: the `QUESTIONS` it takes part in; those of ``core`` in every bare
      ``asv run``.
    - ``random``: its output differs from call to call, so it cannot be compared value by value.
    - ``cases(batch_size)``: further inputs for which the compiled module must be right, too.
    - ``stream(batch_size)``: inputs of differing shape, one request after another.
    """

    name: str
    family: str
    build: Build
    imports: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    random: bool = False
    cases: Several | None = None
    stream: Several | None = None

    def answers(self, question: str) -> bool:
        """Whether it takes part in that question."""
        return question == "inference" or question in self.core or question in self.also


VARIABLE = "TORCHCOMPILE_SUITE_WORKLOADS"
ENTRY_POINTS = "torchcompile_suite.workloads"


class WorkloadError(SuiteError):
    """A workload file cannot be used, or a workload does not exist; the message says which."""


_registry: dict[str, Workload] = {}


def workload(
    name: str,
    *,
    family: str,
    imports: tuple[str, ...] = (),
    core: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    random: bool = False,
    cases: Several | None = None,
    stream: Several | None = None,
) -> Callable[[F], F]:
    """Register the decorated ``build(batch_size)`` under a name that is forever.

    The arguments are the fields of `Workload`. Raises ValueError when the name is taken (two
    workloads would share one series), or when a question is none or lacks what it needs.
    """

    def register(build: F) -> F:
        if name in _registry:
            raise ValueError(f"workload {name!r} is registered twice; choose another name")
        if unknown := {*core, *also} - QUESTIONS:
            raise ValueError(
                f"workload {name!r}: no question {', '.join(sorted(unknown))}; "
                f"there are: {', '.join(sorted(QUESTIONS))}"
            )
        found = Workload(name, family, build, imports, core, also, random, cases, stream)
        for question, needs in (("dynamic_shapes", "stream"), ("tracing", "cases")):
            if found.answers(question) and getattr(found, needs) is None:
                raise ValueError(f"workload {name!r}: the question {question} needs {needs}=")
        _registry[name] = found
        return build

    return register


@cache
def _load() -> None:
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        importlib.import_module(f"{__name__}.{module.name}")
    for path in files():
        _load_file(path)


def files() -> list[Path]:
    """The workload files outside the package: those the variable names, then entry points'.

    A benchmark's process runs in a release's environment, where the user's package is not
    installed, so an entry point is taken as the file it lies in.
    """
    found = [Path(text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    for point in metadata.entry_points(group=ENTRY_POINTS):
        spec = importlib.util.find_spec(point.module)
        if spec is None or spec.origin is None:
            raise WorkloadError(f"entry point {point.name}: there is no module {point.module}")
        found.append(Path(spec.origin))
    return list(dict.fromkeys(found))


def _load_file(path: Path) -> None:
    name = f"torchcompile_suite_workloads_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise WorkloadError(f"{VARIABLE} names {path}, which is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise WorkloadError(
            f"the workload file {path} fails: {type(error).__name__}: {error}"
        ) from None


def names() -> list[str]:
    """Every registered workload, in the order of their families' files."""
    _load()
    return list(_registry)


def answering(question: str) -> list[str]:
    """The names of those that take part in a question, one of `QUESTIONS`."""
    _load()
    return [found.name for found in _registry.values() if found.answers(question)]


def get(name: str) -> Workload:
    """The workload of that name; raises WorkloadError naming those there are."""
    _load()
    try:
        return _registry[name]
    except KeyError:
        raise WorkloadError(f"no workload {name!r}; there are: {', '.join(_registry)}") from None


def imports() -> list[str]:
    """The libraries that the registered workloads need, each once."""
    _load()
    return sorted({name for found in _registry.values() for name in found.imports})
