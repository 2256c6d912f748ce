"""What the user names for ``torchcompile-suite try``: a model's place and the shapes of its inputs.

The command line names a factory in a file or a module, or a timm model. Measuring processes read
the `Target` as JSON from an environment variable. `build` makes the model of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ..workloads import WorkloadError, names

VARIABLE = "TORCHCOMPILE_SUITE_TARGET"
DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "complex64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
# The batch dimension in the shape of an input.
BATCH = "B"
_INPUT = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>(?:B|\d+)(?:x(?:B|\d+))*)"
    r"(?::(?P<dtype>[a-z]+\d*))?(?::(?P<below>\d+))?"
)


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model to build.

    - ``kind`` and ``where``: the path of a file, the name of a module, or the name of a timm model.
      ``pickle``: the path of a file that cloudpickle wrote, with a pair of module and inputs.
    - ``factory``: the attribute of the file or module to call.
    - ``inputs``: shapes of random inputs (see `shapes`). They replace the factory's own inputs.
    - ``stream``: batch sizes of a stream of requests; empty if there is none.
    """

    name: str
    kind: Literal["file", "module", "timm", "pickle"]
    where: str
    factory: str = ""
    inputs: tuple[str, ...] = ()
    stream: tuple[int, ...] = ()


class Shape(NamedTuple):
    """A random input. A size of None is the batch size; integers are drawn from 0 to below - 1."""

    name: str
    sizes: tuple[int | None, ...]
    dtype: str
    below: int

    @property
    def scales(self) -> bool:
        """Whether the batch size is part of the shape."""
        return None in self.sizes


def parse(text: str, inputs: Sequence[str] = ()) -> Target | None:
    """The target with that name; None for one of the suite's own workloads.

    ``text`` is ``path/file.py:factory``, ``package.module:factory`` or a timm model; ``inputs`` are
    shapes (see `shapes`). Raises WorkloadError if the text names no model or an input is no shape.
    """
    shapes(inputs)
    where, colon, factory = text.rpartition(":")
    if not colon:
        return _parse_name(text, inputs)
    if not re.fullmatch(r"[A-Za-z_][\w.]*", factory):
        raise WorkloadError(_names_no_model(text))
    if where.endswith(".py"):
        path = Path(where).resolve()
        if not path.is_file():
            raise WorkloadError(f"there is no file {where}")
        return Target(_name(path.stem, factory), "file", str(path), factory, tuple(inputs))
    if not re.fullmatch(r"[A-Za-z_][\w.]*", where):
        raise WorkloadError(_names_no_model(text))
    return Target(_name(where, factory), "module", where, factory, tuple(inputs))


def _parse_name(text: str, inputs: Sequence[str]) -> Target | None:
    """A name without a factory: a workload of the suite (None), or a timm model."""
    if text.endswith(".py"):
        raise WorkloadError(f"{text} is a file; name its factory, too: {text}:make_model")
    if text in names():
        if inputs:
            raise WorkloadError(f"the workload {text} has its own inputs: leave --input out")
        return None
    if not re.fullmatch(r"[\w.\-]{1,80}", text):
        raise WorkloadError(_names_no_model(text))
    return Target(text, "timm", text, inputs=tuple(inputs))


def _names_no_model(text: str) -> str:
    return (
        f"{text!r} names no model; give path/file.py:factory, package.module:factory, "
        "a timm model or one of the suite's workloads"
    )


def _name(where: str, factory: str) -> str:
    """The name of the workload. Results with the same name form one series."""
    name = re.sub(r"[^A-Za-z0-9_.\-]", "_", f"{where}.{factory}").lstrip("_.-")
    return name[-80:].lstrip("_.-")


def shapes(texts: Sequence[str]) -> list[Shape]:
    """The inputs that the texts describe: ``[name=]sizes[:dtype[:below]]``.

    Examples: ``8x3x224x224:float32``, ``Bx128:int64:50257``, ``mask=Bx128:bool``. The default dtype
    is float32, the default bound of integers is 2. Inputs with names are passed by keyword. Raises
    WorkloadError.
    """
    inputs = []
    for text in texts:
        match = _INPUT.fullmatch(text)
        if match is None or (match["dtype"] or "float32") not in DTYPES:
            raise WorkloadError(
                f"no input {text!r}; write [name=]sizes[:dtype[:below]], such as "
                f"8x3x224x224:float32 or ids=Bx128:int64:50257; dtypes: {', '.join(DTYPES)}"
            )
        sizes = tuple(None if size == BATCH else int(size) for size in match["shape"].split("x"))
        dtype, below = match["dtype"] or "float32", int(match["below"] or 2)
        inputs.append(Shape(match["name"] or "", sizes, dtype, below))
    if len({bool(shape.name) for shape in inputs}) > 1:
        raise WorkloadError("give all inputs a name, or none of them: name=sizes:dtype")
    return inputs


def from_environment() -> Target | None:
    """The target of this process; None if the environment names none."""
    text = os.environ.get(VARIABLE)
    return msgspec.json.decode(text, type=Target) if text else None
