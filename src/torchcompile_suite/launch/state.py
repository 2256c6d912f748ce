"""What a call reads and changes beside its outputs: generators, buffers, attributes, inputs.

Two calls can only be compared if both start from the same state. `State` keeps a copy and puts it
back in place, because the compiled module holds the very same objects.
"""

from __future__ import annotations

import math
import operator
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .values import CODE, same

# Deeper objects are shared with other parts of a program, and are not a module's own.
DEEPEST = 8
# Of a module: the weights, which have checksums, and what belongs to torch.
_NOT_STATE = ("_parameters", "_modules", "_compiled_call_impl", "_non_persistent_buffers_set")
_CLOSED = (*CODE, torch.dtype, torch.device)


def seed(value: int) -> None:
    """Seed the generators that all modules share: torch's, Python's and NumPy's."""
    torch.manual_seed(value)
    random.seed(value)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(value)


def drawn(device: str) -> list[bytes]:
    """The state of these generators: it differs after a call that has drawn numbers."""
    states = [_bytes(torch.get_rng_state()), repr(random.getstate()).encode()]
    if numpy := sys.modules.get("numpy"):
        states.append(repr([*numpy.random.get_state(), *numpy.random.get_state()[1]]).encode())
    if device == "cuda":
        states.append(_bytes(torch.cuda.get_rng_state()))
    return states


def _bytes(generator: torch.Tensor) -> bytes:
    """The state of a generator, without NumPy: torch does not need it."""
    return bytes(generator.tolist())


class State:
    """The state of a module and its inputs, as it was when this object was made.

    - ``parameters``: keep a copy of the weights, too. Without it there are only their checksums,
      because a copy of all weights may not fit beside them.

    Copies of what lies on an accelerator are on the host. State outside the module and its inputs,
    in a global variable, say, is not found.
    """

    def __init__(self, module: torch.nn.Module, inputs: Any, parameters: bool = False) -> None:
        """Copy the state as it is now."""
        self._module = module
        self._inputs = inputs
        self._copies: dict[str, torch.Tensor] = {}
        self._generators: list[torch.Generator] = []
        memo: dict[int, Callable[[], Any]] = {}
        # A module may also have its weights in a list, as an RNN has: they are no state.
        self._weights = set() if parameters else {id(weight) for weight in module.parameters()}
        self._restores = [
            self._held(value, path, memo, 0) for path, value in _roots(module, inputs)
        ]
        self._sums = {} if parameters else _checksums(module)
        if parameters:
            for name, weight in module.named_parameters():
                self._restores.append(self._held(weight, name, memo, 0))

    def restore(self) -> None:
        """Put everything back in place. The objects stay the same: guards of a compiler hold."""
        with torch.no_grad():
            for restore in self._restores:
                restore()

    def drawn(self) -> list[bytes]:
        """The state of the generators that the module and the inputs hold; see `drawn`."""
        return [_bytes(generator.get_state()) for generator in self._generators]

    def touched(self) -> bool:
        """Whether weights have changed that there are only checksums of."""
        return bool(self._sums) and _checksums(self._module) != self._sums

    def changes(self) -> dict[str, torch.Tensor]:
        """Copies of the tensors that differ from the kept ones, by their place."""
        found: dict[str, torch.Tensor] = {}
        seen = set(self._weights)
        places = list(_roots(self._module, self._inputs))
        places += [item for item in self._module.named_parameters() if item[0] in self._copies]
        for path, value in places:
            for name, tensor in _tensors(value, path, seen, 0):
                kept = self._copies.get(name)
                if kept is None or not same(tensor.detach().cpu(), kept):
                    found[name] = _copied(tensor)
        return found

    def completed(self, changes: dict[str, torch.Tensor], name: str) -> torch.Tensor | None:
        """The tensor at that place after a call that has made ``changes``."""
        return changes.get(name, self._copies.get(name))

    def _held(
        self, value: Any, path: str, memo: dict[int, Callable[[], Any]], depth: int
    ) -> Callable[[], Any]:
        """A function that puts the value back as it is now, and returns it."""
        # A submodule in a list has a place of its own, and is not opened here.
        own_place = depth and isinstance(value, torch.nn.Module)
        if own_place or id(value) in self._weights:
            return lambda: value
        if id(value) in memo:
            return memo[id(value)]
        memo[id(value)] = lambda: value  # for an object that holds itself
        memo[id(value)] = restore = self._restoring(value, path, memo, depth)
        return restore

    def _restoring(
        self, value: Any, path: str, memo: dict[int, Callable[[], Any]], depth: int
    ) -> Callable[[], Any]:
        if isinstance(value, torch.Tensor):
            if not _plain(value):
                return lambda: value
            copy = self._copies[path] = _copied(value)
            return lambda: value if same(value.detach().cpu(), copy) else value.copy_(copy)
        if isinstance(value, torch.Generator):
            self._generators.append(value)
            drawn_so_far = value.get_state()
            return lambda: value.set_state(drawn_so_far)
        if isinstance(value, random.Random):
            numbers = value.getstate()

            def renumber() -> Any:
                value.setstate(numbers)
                return value

            return renumber
        if isinstance(value, set):
            return _refilled(value, set(value), value.update)
        children = _children(value, depth)
        if children is None:
            return lambda: value
        held = {
            name: self._held(child, f"{path}.{name}", memo, depth + 1)
            for name, child in children.items()
        }
        if isinstance(value, list | deque):
            return lambda: _refilled(value, [one() for one in held.values()], value.extend)()
        if isinstance(value, tuple):
            return lambda: ([one() for one in held.values()], value)[1]
        own = value if isinstance(value, dict) else vars(value)

        def restore() -> Any:
            for name, one in held.items():
                was = one()
                if own.get(name, held) is not was:
                    own[name] = was
            if own is value:
                for name in own.keys() - held.keys():
                    del own[name]
            return value

        return restore


def _refilled(value: Any, items: Any, fill: Callable[[Any], None]) -> Callable[[], Any]:
    def restore() -> Any:
        if len(value) != len(items) or any(map(operator.is_not, value, items)):
            value.clear()
            fill(items)
        return value

    return restore


def _roots(module: torch.nn.Module, inputs: Any) -> Iterator[tuple[str, Any]]:
    yield "inputs", inputs
    for name, part in module.named_modules():
        yield name or type(module).__name__, part


def _children(value: Any, depth: int) -> dict[Any, Any] | None:
    """What the value holds, by name; None if it is not opened."""
    if depth >= DEEPEST or isinstance(value, _CLOSED):
        return None
    if isinstance(value, list | tuple | deque):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, torch.nn.Module):
        return {
            name: child
            for name, child in vars(value).items()
            if name not in _NOT_STATE and "_hooks" not in name
        }
    # Loggers, locks and a compiler's own objects are no state of the module's.
    owner = type(value).__module__.partition(".")[0]
    if owner == "torch" or (owner in sys.stdlib_module_names and owner != "types"):
        return None
    own = getattr(value, "__dict__", None)
    return dict(own) if isinstance(own, dict) else None


def _tensors(
    value: Any, path: str, seen: set[int], depth: int
) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in a value, each once, with their places."""
    if id(value) in seen or (depth and isinstance(value, torch.nn.Module)):
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        if _plain(value):
            yield path, value
        return
    for name, child in (_children(value, depth) or {}).items():
        yield from _tensors(child, f"{path}.{name}", seen, depth + 1)


def _plain(tensor: torch.Tensor) -> bool:
    """Whether the tensor's values can be copied and put back."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", None))
        and tensor.layout == torch.strided
        and not (tensor.is_meta or tensor.is_nested or tensor.is_quantized)
    )


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True)


def _checksums(module: torch.nn.Module) -> dict[str, list[float]]:
    """Two sums of each weight, without a copy of it: equal for weights that nobody wrote to."""
    sums = {}
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if _plain(weight) and weight.is_floating_point():
                if weight.dtype.itemsize == 1:  # float8 is promoted to no other dtype
                    weight = weight.view(torch.uint8).float()
                total = weight.sum(dtype=torch.float64)
                norm = torch.linalg.vector_norm(weight, dtype=torch.float64)
                sums[name] = [float(total), float(norm)]
    return {name: found for name, found in sums.items() if all(map(math.isfinite, found))}
