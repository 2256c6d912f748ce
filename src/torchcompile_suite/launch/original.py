"""A user's module: as it was before it was compiled, as its user has it (`AsGiven`), and reset.

Eager has to be eager: a module that compiles a part of itself would be compared with itself.
"""

from __future__ import annotations

import gc
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..workloads import WorkloadError

_DYNAMO = "torch._dynamo.eval_frame"
_METRICS = "torch._dynamo.utils"
# Names of parts in a note, at most.
_MOST = 3


class AsGiven:
    """What the user's code compiles. ``module`` is called like the original."""

    def __init__(self, module: torch.nn.Module) -> None:
        """``module``: as the factory returned it."""
        self.module = module
        # How a value is put in the place of a compiled part, the part, and what was compiled.
        self._parts: list[tuple[Callable[[Any], object], Any, Any]] = []

    def take_out(self, put: Callable[[Any], object], compiled: Any, inner: Any) -> None:
        """Put ``inner``, what was compiled, in the place of the compiled part."""
        self._parts.append((put, compiled, inner))
        put(inner)

    def put(self, compiled: bool) -> None:
        """Put the parts to where the user's code has them: compiled, or as they were before."""
        for put, part, inner in self._parts:
            put(part if compiled else inner)

    def only_in(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """The call with the compiled parts, which are taken out now and after it."""

        def with_parts() -> Any:
            self.put(compiled=True)
            try:
                return call()
            finally:
                self.put(compiled=False)

        self.put(compiled=False)
        return with_parts


# By the identity of the original, which its value keeps alive.
_AS_GIVEN: dict[int, AsGiven] = {}


def as_given(module: torch.nn.Module) -> AsGiven | None:
    """What the user's code compiles of this original; None if it compiles nothing."""
    return _AS_GIVEN.get(id(module))


def original(module: torch.nn.Module) -> tuple[torch.nn.Module, str]:
    """Take all that is compiled out of the module, which changes. Returns the module without
    compiled parts, and a note on what was compiled; empty if nothing was.

    It also changes the classes and Python modules that the module's code is in: functions that
    `torch.compile` decorates become what they were. torch's own functions stay.
    """
    if _DYNAMO not in sys.modules:
        return module, ""  # an import here would count as a part of the model's
    given = AsGiven(module)
    found: list[str] = []
    if _is_wrapper(module):
        module = _inner(module)
        found.append("the whole module")
    for path, part in list(module.named_modules()):
        if _is_wrapper(part):
            continue
        name = path.replace("._orig_mod", "")
        if getattr(part, "_compiled_call_impl", None) is not None:
            put = partial(setattr, part, "_compiled_call_impl")
            given.take_out(put, part._compiled_call_impl, None)
            found.append(name or "the whole module")
        found += [f"{name}.{own}".lstrip(".") for own in _restore_attributes(part, given)]
    owners = {id(owner): owner for part in module.modules() for owner in _code(type(part))}
    mentioned = {name for owner in owners.values() for name in _mentioned(owner)}
    for owner in owners.values():
        found += [
            f"{owner.__name__}.{name}"
            for name in _restore_functions(owner, given)
            # Not all functions of a file belong to this model.
            if isinstance(owner, type) or name in mentioned
        ]
    if not found:
        return module, ""
    _AS_GIVEN[id(module)] = given
    named = list(dict.fromkeys(found))
    more = f" and {len(named) - _MOST} more" if len(named) > _MOST else ""
    return module, (
        f"compiled already: {', '.join(named[:_MOST])}{more}; measured is the original, in eager "
        "and compiled as a whole"
    )


def refuse_compiled(module: torch.nn.Module, call: Callable[[], object]) -> None:
    """Call, and raise WorkloadError if anything compiled while the module ran in eager.

    What the factory has called and compiled is compiled anew. This does not import Dynamo. The call
    may import it, if the module compiles a part of itself only then.
    """
    if dynamo := sys.modules.get(_METRICS):
        torch._dynamo.reset()
        dynamo.clear_compilation_metrics()
    call()
    dynamo = sys.modules.get(_METRICS)
    if dynamo and (found := _captured(dynamo, module)):
        raise WorkloadError(
            f"the module compiles a part of itself ({found[0]}), and the original cannot be had: "
            "return it from the factory without torch.compile"
        )


def _captured(dynamo: Any, module: torch.nn.Module) -> list[str]:
    """Names and places of the functions that were captured, torch's own left out.

    torch compiles some for itself, such as FlexAttention and `torch.cond`. Of a module of torch's
    that the user compiles, a function of torch's is captured as well.
    """
    own = f"{Path(torch.__file__).parent}/"
    frames = [
        frame for frame in dynamo.get_compilation_metrics() if getattr(frame, "co_name", None)
    ]
    found = [
        f"{frame.co_name}, {Path(frame.co_filename).name}:{frame.co_firstlineno}"
        for frame in frames
        if not frame.co_filename.startswith(own)
    ]
    if any(frame.co_filename.startswith(f"{own}_dynamo/") for frame in frames):
        found += _wrapped(module)
    return found


def _wrapped(module: torch.nn.Module) -> list[str]:
    """The parts of the module that something compiled stands for, wherever it is kept."""
    if as_given(module) is not None:
        return []  # what was taken out is kept
    parts = {id(part): part for part in module.modules()}
    return [
        type(part).__name__
        for one in gc.get_objects()
        if _is_wrapper(one) and (part := parts.get(id(one._orig_mod))) is not None
    ]


def _restore_attributes(part: torch.nn.Module, given: AsGiven) -> list[str]:
    """Restore the submodules and functions that the module holds. Returns their names."""
    restored = []
    for name, child in list(part._modules.items()):
        if _is_wrapper(child):
            given.take_out(partial(part._modules.__setitem__, name), child, _inner(child))
            restored.append(name)
    for name, value in list(vars(part).items()):
        if is_compiled(value):
            given.take_out(partial(vars(part).__setitem__, name), value, _inner(value))
            restored.append(name)
        elif type(value) in (list, dict):
            # Modules in a plain list are no submodules.
            keys = value if isinstance(value, dict) else range(len(value))
            compiled = [key for key in keys if is_compiled(value[key])]
            for key in compiled:
                given.take_out(partial(value.__setitem__, key), value[key], _inner(value[key]))
            restored += [name] * bool(compiled)
    return restored


def _code(owner: type) -> Iterator[Any]:
    """The classes of a module, and the Python modules that they are defined in, without torch's."""
    for each in owner.__mro__:
        if each.__module__.partition(".")[0] in ("torch", "builtins"):
            continue
        yield each
        if (module := sys.modules.get(each.__module__)) is not None:
            yield module


def _restore_functions(owner: Any, given: AsGiven) -> list[str]:
    """Restore the functions of a class or of a Python module. Returns their names."""
    restored = []
    for name, value in list(vars(owner).items()):
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if is_compiled(function):
            put = partial(_put, owner, name, type(value), function is value)
            given.take_out(put, function, _inner(function))
            restored.append(name)
    return restored


def _put(owner: Any, name: str, kind: Any, plain: bool, function: Any) -> None:
    """Set a function of a class, as the kind of method that it was."""
    setattr(owner, name, function if plain else kind(function))


def _mentioned(owner: Any) -> set[str]:
    """The names that the methods of a class use, also inside of them and in functions of the file
    that they call; empty for a Python module.
    """
    if not isinstance(owner, type):
        return set()
    functions = [inspect.unwrap(_inner(value)) for value in vars(owner).values() if callable(value)]
    waiting = [code for each in functions if (code := getattr(each, "__code__", None))]
    of_file = vars(sys.modules.get(owner.__module__, owner))
    names: set[str] = set()
    while waiting:
        code = waiting.pop()
        waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        for name in set(code.co_names) - names:
            names.add(name)
            if isinstance(used := _inner(of_file.get(name)), types.FunctionType):
                used = _inner(inspect.unwrap(used))
                if getattr(used, "__globals__", None) is of_file:
                    waiting.append(used.__code__)
    return names


def _is_wrapper(value: Any) -> bool:
    """Whether it is a module that `torch.compile` has put around another one."""
    return issubclass(type(value), sys.modules[_DYNAMO].OptimizedModule)


def is_compiled(value: Any) -> bool:
    """Whether `torch.compile` made it. A disabled function has an original, too, and no config."""
    if _is_wrapper(value):
        return True
    attributes = getattr(value, "__dict__", None) if callable(value) else None
    return (
        isinstance(attributes, dict)
        and "_torchdynamo_orig_callable" in attributes
        and "get_compiler_config" in attributes
    )


def _inner(value: Any) -> Any:
    while is_compiled(value):
        value = value._orig_mod if _is_wrapper(value) else value._torchdynamo_orig_callable
    return value


# By the identity of a module, which is alive, so that its identity stays its own.
_RESETS: dict[int, tuple[torch.nn.Module, Callable[[], object]]] = {}


def keep_reset(module: torch.nn.Module, function: Callable[[], object]) -> None:
    """The function, which is the user's, gives this module a fresh state."""
    _RESETS[id(module)] = module, function


def has_reset(module: torch.nn.Module) -> bool:
    """Whether there is a function that resets the module's state."""
    return id(module) in _RESETS


def reset(module: torch.nn.Module) -> bool:
    """Reset the module's state. False if there is no function for that."""
    if not has_reset(module):
        return False
    _RESETS[id(module)][1]()
    return True
