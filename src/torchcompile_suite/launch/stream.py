"""Calls that are a pass over requests of different shapes, with several policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..cell import Cell
from . import failures
from .forward import autocast
from .subject import Call, Inputs, Subject, apply, of_release
from .values import copied_output, mapped, of_inputs, tensors

# Policy for changing shapes -> the argument ``dynamic`` of torch.compile.
POLICIES = {
    "recompile": False,
    "automatic": None,
    "dynamic": True,
    "marked": None,
    "buckets": False,
    "unbacked": None,
    "oblivious": True,
}


class ShapeStream(Subject):
    """One pass over requests of different shapes. The policies of ``cell.shapes`` are:

    - ``recompile``: ``dynamic=False``, one graph for each shape.
    - ``automatic``: torch's default, which makes a size dynamic after it has changed once.
    - ``dynamic``: ``dynamic=True``, symbolic sizes from the start.
    - ``marked``: `torch._dynamo.mark_dynamic` on the sizes that vary.
    - ``buckets``: ``dynamic=False``, each varying size is padded up to a power of two.
    - ``unbacked``: `torch._dynamo.decorators.mark_unbacked` on the sizes that vary. The compiler
      never looks at their values, also not to give a size of one a graph of its own.
    - ``oblivious``: as ``dynamic``, with `torch.fx.experimental._config.backed_size_oblivious`: the
      compiler assumes that no size is 0 or 1.
    """

    def __init__(
        self,
        cell: Cell,
        module: torch.nn.Module,
        stream: Callable[[int], list[Inputs]],
    ) -> None:
        """``stream`` makes the inputs of one pass for a batch size, in their order."""
        self.requests = stream(cell.batch_size)
        super().__init__(cell, module, self.requests[0])
        self.module_calls = len(self.requests)
        self.shapes = len({_shapes(request) for request in self.requests})
        self._stream = stream
        self._varying = _varying(self.requests)
        self.dynamic = POLICIES[cell.shapes]

    def call(self, forward: Any) -> list[Any]:
        """The outputs of all requests from the first `reset` on, which comes after all timing; none
        before, as a server that has answered.

        The outputs of a CUDA graph are in its own memory, where the graph of the next request
        writes. So those that are compared are copied when they arrive.
        """
        kept = []
        for request in self.requests:
            with autocast(self.cell):
                if self._kept is not None:
                    kept.append(copied_output(apply(forward, request)))
                else:
                    apply(forward, request)  # no name: nothing of it is alive at the next request
        return kept

    def compile(self) -> tuple[Call, Any]:
        """See `Subject.compile`. Marks the requests first, if the policy does so.

        Raises `failures.Unsupported` if this release lacks the policy.
        """
        if not any(self._varying) and self.cell.shapes in ("marked", "buckets", "unbacked"):
            raise failures.Unsupported(
                "no size to pad or to mark: the requests differ in their number of tensors or of "
                "dimensions, have the same sizes, or hold their tensors in other objects than "
                "tuples, lists, mappings and dataclasses"
            )
        if self.cell.shapes == "oblivious":
            _assume_no_size_of_one()
        self._mark(self.requests)
        call, forward = super().compile()
        if self.cell.shapes != "buckets":
            return call, forward

        def padded(*given: Any, **named: Any) -> Any:
            return apply(forward, _pad(named or given, self._varying))

        return (lambda: self.call(padded)), forward

    def serve(self, forward: Any, request: Inputs) -> Any:
        """The output of one request, in the way in which the compiled call makes it."""
        padded = self.cell.shapes == "buckets"
        with autocast(self.cell):
            return apply(forward, _pad(request, self._varying) if padded else request)

    def unseen(self) -> list[Inputs]:
        """Requests of other shapes: those of the next batch size whose shapes no request has."""
        seen = [_shapes(request) for request in self.requests]
        # As the requests of the pass are made: tensors of inference mode would fail other guards.
        with torch.inference_mode(False):
            others = self._stream(self.cell.batch_size + 1)
        unseen = [request for request in others if _shapes(request) not in seen]
        self._mark(unseen)
        return unseen

    def _mark(self, requests: list[Inputs]) -> None:
        if self.cell.shapes == "marked":
            # Dynamo gives a size of one a graph of its own, and refuses the mark.
            _mark(requests, self._varying, 2, torch._dynamo.mark_dynamic)
        elif self.cell.shapes == "unbacked":
            mark = of_release(torch._dynamo.decorators, "mark_unbacked")
            _mark(requests, self._varying, 0, mark)

    def outputs(self, result: list[Any]) -> list[Any]:
        """The outputs without padding."""
        if not any(self._varying):
            return result
        return [
            mapped(partial(_unpad, inputs=request, varying=self._varying), output)
            for output, request in zip(result, self.requests, strict=True)
        ]

    def given(self) -> Any:
        """See `Subject.given`."""
        return tuple(self.requests)

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """See `Subject.in_double`."""
        return [[apply(module, request) for request in given]]


def _shapes(inputs: Inputs) -> tuple[torch.Size, ...]:
    return tuple(tensor.shape for tensor in of_inputs(inputs))


def _varying(requests: list[Inputs]) -> list[list[int]]:
    """For each tensor of the inputs, the dimensions whose sizes differ between requests; empty if
    the requests differ in their number of tensors or of dimensions.
    """
    if len({tuple(each.dim() for each in tensors(one)) for one in requests}) > 1:
        return []
    return [
        [dim for dim in range(same[0].dim()) if len({value.shape[dim] for value in same}) > 1]
        for same in zip(*map(tensors, requests), strict=True)
    ]


def _bucket(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _pad(inputs: Inputs, varying: list[list[int]]) -> Inputs:
    """The inputs with each varying size padded with zeros up to its bucket."""
    waiting = iter(varying)

    def padded(value: torch.Tensor) -> torch.Tensor:
        dims = next(waiting)
        return torch.nn.functional.pad(value, _missing(value, dims)) if dims else value

    return mapped(padded, inputs)  # type: ignore[no-any-return]


def _missing(value: torch.Tensor, dims: list[int]) -> list[int]:
    """The argument of `torch.nn.functional.pad`: before and after, from the last dimension on."""
    amounts = (
        _bucket(value.shape[dim]) - value.shape[dim] if dim in dims else 0
        for dim in reversed(range(value.dim()))
    )
    return [padding for amount in amounts for padding in (0, amount)]


def _unpad(output: torch.Tensor, inputs: Inputs, varying: list[list[int]]) -> torch.Tensor:
    """The part of an output that belongs to the request, by the sizes of the first input that
    varies.
    """
    value, dims = next(pair for pair in zip(tensors(inputs), varying, strict=True) if pair[1])
    for dim in dims:
        if dim < output.dim() and output.shape[dim] == _bucket(value.shape[dim]):
            output = output.narrow(dim, 0, value.shape[dim])
    return output


def _mark(
    requests: list[Inputs],
    varying: list[list[int]],
    smallest: int,
    mark: Callable[[torch.Tensor, int], object],
) -> None:
    """Mark the varying sizes that are not smaller."""
    for request in requests:
        for value, dims in zip(tensors(request), varying, strict=True):
            for dim in dims:
                if value.shape[dim] >= smallest:
                    mark(value, dim)


def _assume_no_size_of_one() -> None:
    """The setting stays for the rest of the process: the first call compiles."""
    from torch.fx.experimental import _config

    of_release(_config, "backed_size_oblivious")
    _config.backed_size_oblivious = True
