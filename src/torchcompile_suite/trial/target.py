"""A model that nobody wrote for the suite, as a workload: what ``torchcompile-suite try`` is given.

The command line names a factory in a file or a module, or a timm model. The processes that measure
learn of it through an environment variable, which holds the `Target` as JSON.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import operator
import os
import pickle
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ..workloads import WorkloadError, names, workload

if TYPE_CHECKING:
    import torch

    from ..workloads import Built, Inputs

VARIABLE = "TORCHCOMPILE_SUITE_TARGET"
FAMILY = "target"
DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "complex64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
# The batch dimension, in an input's shape.
BATCH = "B"
_INPUT = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>(?:B|\d+)(?:x(?:B|\d+))*)"
    r"(?::(?P<dtype>[a-z]+\d*))?(?::(?P<below>\d+))?"
)


class TargetError(WorkloadError):
    """What was named cannot be built, or is no model; the message says what to change."""


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to build.

    ``where`` is a path, a module or the name of a timm model, by ``kind``; ``pickle`` is a file
    that cloudpickle wrote, of a pair of module and inputs. ``factory`` is the attribute to call,
    and ``inputs`` are shapes in the place of what it may return. ``stream`` are the batch sizes of
    a stream of requests, if there is one.
    """

    name: str
    kind: Literal["file", "module", "timm", "pickle"]
    where: str
    factory: str = ""
    inputs: tuple[str, ...] = ()
    stream: tuple[int, ...] = ()


class Shape(NamedTuple):
    """An input of random numbers: None is the batch size; integers are drawn ``below`` a bound."""

    name: str
    sizes: tuple[int | None, ...]
    dtype: str
    below: int

    @property
    def scales(self) -> bool:
        """Whether the batch size is part of it."""
        return None in self.sizes


class Made(NamedTuple):
    """A module with the inputs of one call, and whether the batch size asked for made them."""

    module: torch.nn.Module
    inputs: Inputs
    scales: bool


def parse(text: str, inputs: Sequence[str] = ()) -> Target | None:
    """What the text names: ``path/file.py:factory``, ``package.module:factory`` or a timm model.

    None for one of the suite's own workloads. Raises TargetError where it is none of these, and
    where an input is no shape.
    """
    shapes(inputs)
    where, colon, factory = text.rpartition(":")
    if not colon:
        if text.endswith(".py"):
            raise TargetError(f"{text} is a file; name its factory, too: {text}:make_model")
        if text in names():
            if inputs:
                raise TargetError(f"the workload {text} has inputs of its own: leave --input out")
            return None
        if not re.fullmatch(r"[\w.\-]{1,80}", text):
            raise TargetError(_what(text))
        return Target(text, "timm", text, inputs=tuple(inputs))
    if not re.fullmatch(r"[A-Za-z_][\w.]*", factory):
        raise TargetError(_what(text))
    if where.endswith(".py"):
        path = Path(where).resolve()
        if not path.is_file():
            raise TargetError(f"there is no file {where}")
        return Target(_name(path.stem, factory), "file", str(path), factory, tuple(inputs))
    if not re.fullmatch(r"[A-Za-z_][\w.]*", where):
        raise TargetError(_what(text))
    return Target(_name(where, factory), "module", where, factory, tuple(inputs))


def _what(text: str) -> str:
    return (
        f"{text!r} names no model; give path/file.py:factory, package.module:factory, "
        "a timm model or one of the suite's workloads"
    )


def _name(where: str, factory: str) -> str:
    """A workload's name: what series of results are known by."""
    name = re.sub(r"[^A-Za-z0-9_.\-]", "_", f"{where}.{factory}").lstrip("_.-")
    return name[-80:].lstrip("_.-")


def shapes(texts: Sequence[str]) -> list[Shape]:
    """Inputs such as ``8x3x224x224:float32``, ``Bx128:int64:50257`` or ``mask=Bx128:bool``.

    Sizes, dtype (else float32) and, for integers, what they stay below (else 2). With names they go
    by keyword. Raises TargetError.
    """
    found = []
    for text in texts:
        match = _INPUT.fullmatch(text)
        if match is None or (match["dtype"] or "float32") not in DTYPES:
            raise TargetError(
                f"no input {text!r}; write [name=]sizes[:dtype[:below]], such as "
                f"8x3x224x224:float32 or ids=Bx128:int64:50257; dtypes: {', '.join(DTYPES)}"
            )
        sizes = tuple(None if size == BATCH else int(size) for size in match["shape"].split("x"))
        dtype, below = match["dtype"] or "float32", int(match["below"] or 2)
        found.append(Shape(match["name"] or "", sizes, dtype, below))
    if len({bool(each.name) for each in found}) > 1:
        raise TargetError("give all inputs a name or none: name=sizes:dtype")
    return found


def make(target: Target, batch_size: int) -> Made:
    """Build the target. Raises TargetError, or whatever its own code raises."""
    if target.kind == "pickle":
        module, inputs = pickle.loads(Path(target.where).read_bytes())
        return Made(module, inputs, scales=False)
    if target.kind == "timm":
        return _with_inputs(target, *_timm(target.where, batch_size), batch_size, scales=True)
    made, scales = _call(_attribute(target), target, batch_size)
    module, inputs = made if _is_pair(made) else (made, None)
    return _with_inputs(target, module, inputs, batch_size, scales)


def _is_pair(made: Any) -> bool:
    return isinstance(made, (tuple, list)) and len(made) == 2


def _with_inputs(target: Target, module: Any, inputs: Any, batch_size: int, scales: bool) -> Made:
    """Put the shapes of the command line in the place of the factory's own inputs."""
    import torch

    if not isinstance(module, torch.nn.Module):
        raise TargetError(
            f"{target.factory} must return a torch.nn.Module, with its example inputs or without; "
            f"it returns {type(module).__name__}"
        )
    wanted = shapes(target.inputs)
    if wanted:
        scales = scales and target.kind != "timm"
        tensors = [_random(each, batch_size) for each in wanted]
        inputs = (
            dict(zip((each.name for each in wanted), tensors, strict=True))
            if wanted[0].name
            else tuple(tensors)
        )
        scales = scales or any(each.scales for each in wanted)
    elif inputs is None:
        raise TargetError(
            f"{target.factory} returns a module alone; give its inputs: --input 8x3x224x224:float32"
        )
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if isinstance(inputs, list):
        inputs = tuple(inputs)
    if not isinstance(inputs, (tuple, dict)):
        raise TargetError(
            f"{target.factory} returns inputs of type {type(inputs).__name__}; return a tuple (by "
            "position) or a dict (by name)"
        )
    return Made(module, inputs, scales)


def _random(shape: Shape, batch_size: int) -> torch.Tensor:
    import torch

    sizes = [batch_size if size is None else size for size in shape.sizes]
    dtype = getattr(torch, shape.dtype)
    if dtype is torch.bool:
        return torch.rand(sizes) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(sizes, dtype=torch.complex64 if dtype.is_complex else None).to(dtype)
    return torch.randint(0, shape.below, sizes, dtype=dtype)


def _timm(name: str, batch_size: int) -> tuple[Any, Any]:
    import timm

    from ..workloads.timm_models import build

    try:
        return build(name, batch_size)
    except RuntimeError as error:
        if "Unknown model" not in str(error):
            raise
        close = difflib.get_close_matches(name, timm.list_models(), 3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise TargetError(
            f"{name!r} is neither a workload of the suite nor a model of timm {timm.__version__}"
            f"{hint}"
        ) from None


def _attribute(target: Target) -> Any:
    if target.kind == "file":
        module = _load(Path(target.where))
    else:
        try:
            module = importlib.import_module(target.where)
        except ModuleNotFoundError as error:
            if error.name not in _parents(target.where):
                raise
            raise TargetError(
                f"there is no module {error.name}; run it where Python finds it, or name a file"
            ) from None
    try:
        return operator.attrgetter(target.factory)(module)
    except AttributeError:
        raise TargetError(f"{target.where} has no {target.factory}") from None


def _parents(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[: count + 1]) for count in range(len(parts))}


def _load(path: Path) -> Any:
    """The file as a module, with its folder on the path as if it were run."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _call(factory: Any, target: Target, batch_size: int) -> tuple[Any, bool]:
    """What the factory returns, and whether it was told the batch size."""
    import torch

    if isinstance(factory, torch.nn.Module):
        return factory, False
    if not callable(factory):
        raise TargetError(f"{target.factory} is not a function that makes a model")
    parameters = inspect.signature(factory).parameters
    if "batch_size" in parameters:
        return factory(batch_size=batch_size), True
    needed = [
        each.name
        for each in parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if needed:
        raise TargetError(
            f"{target.factory} must take no argument, or batch_size; it needs {', '.join(needed)}"
        )
    return factory(), False


def given() -> Target | None:
    """The target that this process was told of, if any."""
    text = os.environ.get(VARIABLE)
    return msgspec.json.decode(text, type=Target) if text else None


def register(target: Target) -> None:
    """Make a workload of it, under its name."""

    def build(batch_size: int) -> Built:
        module, inputs, _ = make(target, batch_size)
        return module, inputs

    def stream(_batch_size: int) -> list[Inputs]:
        return [build(size)[1] for size in target.stream]

    workload(
        target.name,
        family=FAMILY,
        imports=("timm",) if target.kind == "timm" else (),
        stream=stream if target.stream else None,
    )(build)
