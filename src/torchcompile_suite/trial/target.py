"""What the user names for ``torchcompile-suite try``: a model's place and the shapes of its inputs.

The command line names a factory in a file or a module, or a timm model. Measuring processes read
the `Target` as JSON from an environment variable. `build` makes the model of it.

A user's file is imported as Python would run it: once, from its own folder, without arguments.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple

import msgspec

from ..engine.processes import import_path
from ..host.places import in_packages
from ..workloads import WorkloadError, libraries, names

VARIABLE = "TORCHCOMPILE_SUITE_TARGET"
# With it, Python leaves the current folder out of the import path (3.11 or newer).
_SAFE_PATH = "PYTHONSAFEPATH"
DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "complex64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
# Before a checkpoint of Hugging Face's hub.
HUGGING_FACE = "hf:"
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
      ``hf``: a folder with the configuration of a model of Hugging Face's transformers.
      ``workload``: a workload of the suite, which gets a stream of requests.
    - ``factory``: the attribute of the file or module to call.
    - ``inputs``: shapes of random inputs (see `shapes`). They replace the factory's own inputs.
    - ``stream``: batch sizes of a stream of requests; empty if there is none.
    """

    name: str
    kind: Literal["file", "module", "timm", "pickle", "hf", "workload"]
    where: str
    factory: str = ""
    inputs: tuple[str, ...] = ()
    stream: tuple[int, ...] = ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that the model is from, as far as its kind says."""
        if self.kind == "workload":
            return libraries(self.where)
        return {"timm": ("timm",), "hf": ("transformers",)}.get(self.kind, ())


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


def parse(text: str, inputs: Sequence[str] = ()) -> Target | str:
    """The target with that name, or the name of one of the suite's own workloads.

    ``text`` is ``path/file.py:factory``, ``package.module:factory``, a timm model, or ``hf:`` with
    a checkpoint on Hugging Face's hub or a folder. ``inputs`` are shapes (see `shapes`). Raises
    WorkloadError if the text names no model or an input is no shape.
    """
    shapes(inputs)
    if text.startswith(HUGGING_FACE):
        return _parse_checkpoint(text.removeprefix(HUGGING_FACE), inputs)
    where, colon, factory = text.rpartition(":")
    if not colon:
        return _parse_name(text, inputs)
    if not re.fullmatch(r"[A-Za-z_][\w.]*", factory):
        raise WorkloadError(_names_no_model(text))
    if where.endswith(".py"):
        path = Path(where).resolve()
        if not path.is_file():
            raise WorkloadError(f"there is no file {where}")
        return Target(workload_name(path.stem, factory), "file", str(path), factory, tuple(inputs))
    if not re.fullmatch(r"[A-Za-z_][\w.]*", where):
        raise WorkloadError(_names_no_model(text))
    return Target(workload_name(where, factory), "module", where, factory, tuple(inputs))


def _parse_checkpoint(text: str, inputs: Sequence[str]) -> Target | str:
    """A model of Hugging Face: a workload that has its configuration, or a folder that has it."""
    # The shell expands no tilde after "hf:".
    place = Path(os.path.expanduser(text))  # noqa: PTH111 - stays as it is without a home folder
    if (place / "config.json").is_file():
        path = place.resolve()
        return Target(
            workload_name(HUGGING_FACE[:-1], path.name), "hf", str(path), inputs=tuple(inputs)
        )
    if text.startswith((".", "/", "~")) or place.exists():
        raise WorkloadError(f"{text} has no config.json: it is no saved configuration")
    names()  # registers the workloads, in their order
    from ..workloads.hugging_face import CHECKPOINTS

    if workload := CHECKPOINTS.get(text.rpartition("/")[2]):
        return _parse_name(workload, inputs)
    raise WorkloadError(
        f"{HUGGING_FACE}{text}: the suite downloads nothing. Save its configuration where you can: "
        f"transformers.AutoConfig.from_pretrained({text!r}).save_pretrained('folder'); then name "
        f"{HUGGING_FACE}folder. Without a download there are: {', '.join(CHECKPOINTS)}"
    )


def _parse_name(text: str, inputs: Sequence[str]) -> Target | str:
    """A name without a factory: a workload of the suite, or a timm model."""
    if text.endswith(".py"):
        raise WorkloadError(f"{text} is a file; name its factory, too: {text}:make_model")
    if text in names():
        if inputs:
            raise WorkloadError(f"the workload {text} has its own inputs: leave --input out")
        return text
    if not re.fullmatch(r"[\w.\-]{1,80}", text):
        raise WorkloadError(_names_no_model(text))
    return Target(text, "timm", text, inputs=tuple(inputs))


def _names_no_model(text: str) -> str:
    return (
        f"{text!r} names no model; give path/file.py:factory, package.module:factory, "
        "a timm model or one of the suite's workloads"
    )


def decides_itself(name: str, batch_size: int) -> str:
    """What to do about a model whose batch size nobody can choose."""
    return (
        f"{name} decides its batch size ({batch_size}) itself; add a parameter batch_size to its "
        "factory, or give inputs with a B: --input Bx3x224x224"
    )


def workload_name(where: str, factory: str) -> str:
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


def variables() -> dict[str, str]:
    """The environment of the processes that import a file.

    The current folder is not on their import path before torch is imported: there, a file with a
    name of the standard library, such as ``profile.py``, would be taken for that module.
    """
    return {_SAFE_PATH: "1", "PYTHONPATH": import_path()}


def without_arguments(program: str) -> None:
    """Make this process look like a script without arguments to the user's code."""
    sys.argv = [program]
    os.environ.pop(_SAFE_PATH, None)


@functools.cache
def load(path: Path) -> ModuleType:
    """Import the file. Raises WorkloadError, or any exception of the user's code.

    A file of a package gets the package's name, so that its relative imports work. A name that
    means something else here, as ``profile`` does, is left to that module.
    """
    without_arguments(str(path))
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if any("." in name for name in names):  # no import statement can name it
        folder, names = path.parent, [path.stem]
    if path.stem in sys.stdlib_module_names:
        importlib.import_module(path.stem)  # before the user's folder is on the import path
    # The folder of a package comes first: a package may have a module of its own name.
    sys.path.insert(0, str(folder))
    sys.path.append(str(Path.cwd()))
    if len(names) > 1:
        # The package itself comes after Python: its modules may have names of Python's.
        installed = (at for at, entry in enumerate(sys.path) if in_packages(f"{entry}/any"))
        sys.path.insert(next(installed, len(sys.path)), str(path.parent))
        name = ".".join(names)
        _stand_in(name)
        return importlib.import_module(name)
    name = f"{path.stem}_py" if path.stem in sys.modules else path.stem
    _stand_in(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WorkloadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _stand_in(name: str) -> None:
    """Let ``__main__`` have what the module has: the file is a script, too, and what it has pickled
    as one names the classes of ``__main__``.
    """
    vars(sys.modules["__main__"]).setdefault(
        "__getattr__", lambda attribute: getattr(sys.modules.get(name), attribute)
    )
