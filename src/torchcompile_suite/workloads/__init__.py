"""What gets compiled: a registry of workloads, one file a family.

A file in this folder registers its workloads with `workload` and needs no other mention
anywhere: benchmarks, tests and pages ask `names` and `get`. Such a file imports torch inside its
functions only, because ASV discovers benchmarks by importing this package.

Files outside the package take part when ``TORCHCOMPILE_SUITE_WORKLOADS`` names them (paths, joined
as in PATH).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import SuiteError

if TYPE_CHECKING:
    import torch

    Built = tuple[torch.nn.Module, tuple[Any, ...]]
    Build = Callable[[int], Built]
    F = TypeVar("F", bound=Build)


class Workload(NamedTuple):
    """A named factory of a module and its example inputs.

    ``build(batch_size)`` returns ``(module, inputs)`` on the CPU in float32, the module called as
    ``module(*inputs)``. The caller seeds torch before and moves both after. ``imports`` names the
    libraries that building needs, so that a fork server can import them once.
    """

    name: str
    family: str
    build: Build
    imports: tuple[str, ...] = ()


VARIABLE = "TORCHCOMPILE_SUITE_WORKLOADS"


class WorkloadError(SuiteError):
    """A workload file cannot be used, or a workload does not exist; the message says which."""


_registry: dict[str, Workload] = {}


def workload(name: str, *, family: str, imports: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register the decorated ``build(batch_size)`` under a name that is forever.

    Raises ValueError when the name is taken: two workloads would share one series.
    """

    def register(build: F) -> F:
        if name in _registry:
            raise ValueError(f"workload {name!r} is registered twice; choose another name")
        _registry[name] = Workload(name, family, build, imports)
        return build

    return register


@cache
def _load() -> None:
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        importlib.import_module(f"{__name__}.{module.name}")
    for text in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _load_file(Path(text))


def _load_file(path: Path) -> None:
    name = f"torchcompile_suite_workloads_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise WorkloadError(f"{VARIABLE} names {path}, which is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def names() -> list[str]:
    """Every registered workload, in the order of their families' files."""
    _load()
    return list(_registry)


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
