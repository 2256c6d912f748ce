"""What an eager call does inside: its dtypes and bytes, and the same call with float64 everywhere.

`Module.double` cannot reach a cast that is written in forward, a constant of a narrower dtype, or
the dtype in which a random mask is drawn. A dispatch mode sees each operator, and can.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from . import device
from .values import leaves

# Their results move by a whole step where rounding decides.
_STEPS = re.compile(r"::(round|fake_quantize|_fake_quantize|quantize|_quantize)")
_CONVOLUTION = re.compile(r"::\w*convolution")
_PRODUCT = re.compile(r"::(mm|bmm|addmm|baddbmm|addmv|mv|linear|matmul|_int_mm)\b")


class _Operators(TorchDispatchMode):  # type: ignore[misc]
    """Sees each operator of a call."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the operator, or each of those that it decomposes into.

        In inference mode, casts and operators such as dropout are dispatched without being
        decomposed; `torch.utils.flop_counter` decomposes them in the same way.
        """
        kwargs = kwargs or {}
        with self:
            result = func.decompose(*args, **kwargs)
        return self.run(func, args, kwargs) if result is NotImplemented else result

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator that consists of no others."""
        raise NotImplementedError


class Traced(_Operators):
    """Watches the operators of a call.

    - ``lowest``: the floating dtype with the fewest digits that a value had, or None.
    - ``drawing``: the floating dtype in which random numbers were drawn, or None.
    - ``steps``: values were rounded to steps, as quantising does.
    - ``tf32``: products of float32 may have had the digits of TF32, which are those of float16.
    """

    lowest: torch.dtype | None = None
    drawing: torch.dtype | None = None
    steps = False
    tf32 = False

    @property
    def narrow(self) -> bool:
        """Whether a value had fewer digits than float32 has."""
        fewer = self.lowest is not None and lower(torch.float32, self.lowest) is not torch.float32
        return fewer or self.tf32

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the operator, and look at what it takes and returns."""
        result = func(*args, **kwargs)
        self.steps = self.steps or _STEPS.search(func.name()) is not None
        self.tf32 = self.tf32 or _in_tf32(func.name(), result)
        for leaf in leaves((args, kwargs, result)):
            self.steps = self.steps or leaf.is_quantized
            self.lowest = lower(self.lowest, leaf.dtype)
        if self.drawing is None and _draws(func, args, kwargs):
            drawn = (one.dtype for one in leaves(result) if one.is_floating_point())
            self.drawing = next(drawn, None)
        return result


def lower(one: torch.dtype | None, other: torch.dtype) -> torch.dtype | None:
    """The one of two dtypes with fewer digits; a dtype without a fraction does not count."""
    if not other.is_floating_point:
        return one
    return other if one is None or torch.finfo(other).eps > torch.finfo(one).eps else one


class InDouble(_Operators):
    """Runs each operator in float64: casts to other floating dtypes do not lose digits.

    Random numbers are drawn in ``drawing``, the dtype in which the module draws them: the numbers
    depend on the dtype.
    """

    def __init__(self, drawing: torch.dtype) -> None:
        """``drawing``: the dtype of random numbers."""
        super().__init__()
        self._drawing = drawing

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the operator in float64. What it writes to keeps its dtype."""
        if _draws(func, args, kwargs):
            return self._drawn(func, args, kwargs)
        if func.is_view:  # of a copy, it would not reach what it is a view of
            return func(*args, **kwargs)
        written = _written(func, args, kwargs)
        args, kwargs = (_cast(part, torch.float64, written) for part in (args, kwargs))
        return _result(func, func(*args, **kwargs))

    def _drawn(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        wanted = kwargs.get("dtype")
        if wanted is not None and wanted.is_floating_point:
            kwargs = {**kwargs, "dtype": self._drawing if wanted.itemsize == 8 else wanted}
        written = _written(func, args, kwargs)
        if not written:
            args, kwargs = (_cast(part, self._drawing, ()) for part in (args, kwargs))
            return _result(func, func(*args, **kwargs))
        # Drawn into a tensor of the module's own dtype, with the same strides.
        narrow = {id(one): torch.empty_like(one, dtype=self._narrow(one)) for one in written}

        def replaced(value: Any) -> Any:
            return narrow.get(id(value), value)

        func(*tree_map(replaced, args), **tree_map(replaced, kwargs))
        for one in written:
            one.copy_(narrow[id(one)])
        return written[0] if len(written) == 1 else written

    def _narrow(self, one: torch.Tensor) -> torch.dtype:
        return self._drawing if one.dtype == torch.float64 else one.dtype


def _in_tf32(name: str, result: Any) -> bool:
    """Whether the operator may use TF32: in a convolution it may by default."""
    if _CONVOLUTION.search(name):
        backend = torch.backends.cudnn
    elif _PRODUCT.search(name):
        backend = torch.backends.cuda.matmul
    else:
        return False
    if not any(leaf.is_cuda and leaf.dtype == torch.float32 for leaf in leaves(result)):
        return False
    if not device.has_tf32():
        return False
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:  # the user has set torch's newer settings, which must not be mixed
        return True


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that the operator writes to."""
    if not func._schema.is_mutable:
        return []
    found = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            found += leaves(value)
    return found


def _cast(value: Any, dtype: torch.dtype, keep: Any) -> Any:
    """Floating tensors and dtypes inside the value, in that dtype."""
    kept = {id(one) for one in keep}

    def cast(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if leaf.is_floating_point() and leaf.dtype != dtype and id(leaf) not in kept:
                return leaf.to(dtype)
            return leaf
        return dtype if isinstance(leaf, torch.dtype) and leaf.is_floating_point else leaf

    return tree_map(cast, value)


def _draws(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the operator draws random numbers. Attention does so only with dropout."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            return bool(args[place] if place < len(args) else kwargs.get("dropout_p", 0.0))
    return True


def _result(func: Any, result: Any) -> Any:
    """A new result in float64. What the operator wrote to stays as it is."""
    return result if func._schema.is_mutable else _cast(result, torch.float64, ())


def trace(call: Callable[[], Any]) -> Traced:
    """What a call does inside. Nothing is known if the call does not run under a dispatch mode."""
    traced = Traced()
    with contextlib.suppress(Exception), traced:  # FlexAttention, and code of the user's own
        call()
    return traced


class Traffic(_Operators):
    """A context that counts the ATen operators that read or write memory.

    An operator reads each of its input tensors once and writes each of its results once. Views do
    neither, and operators that only reserve memory (``empty``) are not counted. ``_unsafe_view``
    is a view that its schema does not declare.
    """

    _FREE = ("empty", "_unsafe_view")
    operators = 0
    bytes = 0

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the operator, and count it."""
        result = func(*args, **kwargs)
        if not func.is_view and not any(name in func._schema.name for name in self._FREE):
            self.operators += 1
            self.bytes += sum(
                leaf.numel() * leaf.element_size() for leaf in leaves((args, kwargs, result))
            )
        return result
