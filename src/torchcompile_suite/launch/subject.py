"""What is called in a launch: the cell's eager call, its compiled one, and what both must return.

The protocol in `measure` does not know whether a call is a forward pass, a training step, a stream
of requests or one of the classic mistakes; here they are made.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from .. import workloads
from ..cell import Cell
from . import failures

SEED = 20240724
# Small, so that a thousand steps do not leave the numbers a step is meant to work on.
LEARNING_RATE = 1e-5

Call = Callable[[], Any]
Inputs = tuple[Any, ...] | dict[str, Any]


class Subject(NamedTuple):
    """The calls of a cell, all without arguments.

    - ``baseline``: what the compiled call is paired with; ``eager``: the same thing as the compiled
      call, in eager.
    - ``compile()`` sets torch.compile up and returns the call, whose first call compiles, and the
      compiled module.
    - ``reference()``: the outputs to be right, and the name of the dtype they were computed in.
    - ``context()`` is entered around everything that calls.
    - ``reset()`` brings back the state in which calls can be compared, ``outputs`` takes from a
      call's result what is compared.
    - ``random``: outputs differ from call to call, so they are compared as draws.
    - ``module`` and ``inputs``: one forward call of the captured module.
    """

    baseline: Call
    eager: Call
    compile: Callable[[], tuple[Call, Any]]
    reference: Callable[[], tuple[Any, str]]
    context: Callable[[], AbstractContextManager[Any]]
    reset: Callable[[], None]
    outputs: Callable[[Any], Any]
    random: bool
    module: torch.nn.Module
    inputs: Inputs


def build(cell: Cell) -> Subject:
    """Build the cell's workload on its device, seeded, and the calls that the cell asks for."""
    torch.manual_seed(SEED)
    workload = workloads.get(cell.workload)
    module, inputs = workload.build(cell.batch_size)
    train = cell.phase == "training" or cell.protocol == "train-mode"
    module = module.train(train).to(cell.device)
    inputs = to_device(inputs, cell.device)
    if cell.phase == "training":
        return _training(cell, module, inputs, workload.random)
    if cell.shapes != "static":
        if workload.stream is None:
            raise failures.Unsupported(f"workload {cell.workload!r} has no stream of shapes")
        requests = [to_device(each, cell.device) for each in workload.stream(cell.batch_size)]
        return _stream(cell, module, requests, workload.random)
    return _forward(cell, module, inputs, workload.random)


def apply(forward: Callable[..., Any], inputs: Inputs) -> Any:
    """Call it with the inputs: those of a tuple by position, those of a dict by name."""
    return forward(**inputs) if isinstance(inputs, dict) else forward(*inputs)


def to_device(inputs: Inputs, device: str) -> Inputs:
    """The inputs with every tensor on that device."""
    return tree_map(  # type: ignore[no-any-return]
        lambda value: value.to(device) if isinstance(value, torch.Tensor) else value, inputs
    )


def compiler(cell: Cell, dynamic: bool | None = None) -> Callable[[torch.nn.Module], Any]:
    """torch.compile with the cell's mode and backend; the identity for eager."""
    if cell.mode == "eager":
        return lambda module: module
    options: dict[str, Any] = {"backend": cell.backend, "dynamic": dynamic}
    if cell.backend == "inductor":
        options["mode"] = cell.mode
    return lambda module: torch.compile(module, **options)


def autocast(cell: Cell) -> AbstractContextManager[Any]:
    """The autocast region that the cell's calls run in, if any."""
    if cell.dtype == "float32":
        return contextlib.nullcontext()
    dtype = getattr(torch, cell.dtype)
    return torch.autocast(cell.device, dtype)  # type: ignore[no-any-return]


def _grad(cell: Cell) -> AbstractContextManager[Any]:
    if cell.phase == "training" or cell.protocol in ("grad-on", "train-mode"):
        return contextlib.nullcontext()
    return torch.inference_mode()  # type: ignore[no-any-return]


def _seed() -> None:
    torch.manual_seed(SEED + 1)


def _in_double(
    module: torch.nn.Module, inputs: Any, call: Callable[[torch.nn.Module, Any], Any]
) -> tuple[Any, str]:
    """The call's outputs in float64 and that dtype's name; in the module's own dtype where float64
    does not fit in memory or an operator lacks it.
    """
    try:
        exact = copy.deepcopy(module).double()
        return call(exact, tree_map(double, inputs)), "float64"
    except (RuntimeError, MemoryError, NotImplementedError, TypeError):
        return call(module, inputs), "same-dtype"


def double(value: Any) -> Any:
    """A floating-point tensor in float64; anything else as it is."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def _fresh(value: Any) -> Any:
    """A tensor like that one, made now."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.randn_like(value) if value.is_floating_point() else value.clone()


def _forward(cell: Cell, module: torch.nn.Module, inputs: Inputs, random: bool) -> Subject:
    """One forward pass, the same inputs every call."""
    inside = cell.protocol == "data-inside"

    def run(forward: Any) -> Any:
        with autocast(cell):
            return apply(forward, tree_map(_fresh, inputs) if inside else inputs)

    def reference() -> tuple[Any, str]:
        if random:
            torch.manual_seed(SEED + 2)
            return run(module), "another-draw"
        return _in_double(module, inputs, apply)

    # Inputs made inside the call are other ones each time: two draws, not two equals.
    made = _subject(cell, module, inputs, run, reference, random or inside)
    if cell.baseline == "eager-float32" and cell.dtype != "float32":
        return made._replace(baseline=lambda: apply(module, inputs))
    return made


def _subject(
    cell: Cell,
    module: torch.nn.Module,
    inputs: Inputs,
    run: Callable[[Any], Any],
    reference: Callable[[], tuple[Any, str]],
    random: bool,
    dynamic: bool | None = None,
) -> Subject:
    """A subject whose calls are ``run(module)`` and ``run(compiled module)``."""

    def compile_() -> tuple[Call, Any]:
        forward = compiler(cell, dynamic)(module)
        return (lambda: run(forward)), forward

    return Subject(
        baseline=lambda: run(module),
        eager=lambda: run(module),
        compile=compile_,
        reference=reference,
        context=lambda: _grad(cell),
        reset=_seed,
        outputs=lambda result: result,
        random=random,
        module=module,
        inputs=inputs,
    )


def _training(cell: Cell, module: torch.nn.Module, inputs: Inputs, random: bool) -> Subject:
    """One optimizer step: forward and backward for each micro-batch, then AdamW."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE)
    start = copy.deepcopy(module.state_dict())

    def backward(forward: Any, values: Inputs, context: AbstractContextManager[Any]) -> Any:
        with context:
            leaves = [leaf for leaf in tree_leaves(apply(forward, values)) if torch.is_tensor(leaf)]
        loss = sum(leaf.to(_wide(leaf)).square().mean() for leaf in leaves) / cell.accumulation
        loss.backward()
        return loss.detach()

    # CUDA graphs write gradients into memory of their own, which the next micro-batch's replay
    # overwrites: with several, gradients need a place that is theirs.
    keep = cell.accumulation > 1

    def clear(parameters: Iterable[torch.nn.Parameter]) -> None:
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter) if keep else None

    clear(module.parameters())

    def step(forward: Any) -> Any:
        optimizer.zero_grad(set_to_none=not keep)
        for _ in range(cell.accumulation):
            loss = backward(forward, inputs, autocast(cell))
        optimizer.step()
        return loss

    def gradients(of: torch.nn.Module) -> list[torch.Tensor]:
        return [p.grad.clone() for p in of.parameters() if p.grad is not None]

    def outputs(result: Any) -> Any:
        return result, gradients(module)

    def reset() -> None:
        module.load_state_dict(start)
        _seed()

    def reference() -> tuple[Any, str]:
        if random:
            reset()
            torch.manual_seed(SEED + 2)
            return outputs(step(module)), "another-draw"
        reset()

        def in_double(exact: torch.nn.Module, values: Inputs) -> Any:
            clear(exact.parameters())
            for _ in range(cell.accumulation):
                loss = backward(exact, values, contextlib.nullcontext())
            return loss, gradients(exact)

        return _in_double(module, inputs, in_double)

    made = _subject(cell, module, inputs, step, reference, random)
    return made._replace(reset=reset, outputs=outputs)


def _wide(leaf: torch.Tensor) -> torch.dtype:
    return leaf.dtype if leaf.dtype == torch.float64 else torch.float32


def _stream(cell: Cell, module: torch.nn.Module, requests: list[Inputs], random: bool) -> Subject:
    """A call is one pass over the requests, each of another shape. The policies:

    - ``recompile``: ``dynamic=False``, one graph a shape;
    - ``automatic``: torch's default, which makes a size dynamic once it has changed;
    - ``dynamic``: ``dynamic=True``, symbolic from the start;
    - ``marked``: `torch._dynamo.mark_dynamic` on the sizes that vary;
    - ``buckets``: ``dynamic=False``, every such size padded up to a power of two.
    """
    varying = _varying(requests)
    policies = {
        "recompile": False,
        "automatic": None,
        "dynamic": True,
        "marked": None,
        "buckets": False,
    }
    if cell.shapes not in policies:
        known = ", ".join(policies)
        raise failures.Unsupported(f"no policy {cell.shapes!r} for shapes; there are: {known}")

    def passing(forward: Any) -> list[Any]:
        return [apply(forward, each) for each in requests]

    def bucketed(forward: Any) -> list[Any]:
        return [apply(forward, _pad(each, varying)) for each in requests]

    def outputs(result: list[Any]) -> list[Any]:
        return [
            tree_map(lambda out, each=each: _unpad(out, each, varying), one)
            for one, each in zip(result, requests, strict=True)
        ]

    def reference() -> tuple[Any, str]:
        if random:
            torch.manual_seed(SEED + 2)
            return passing(module), "another-draw"
        return _in_double(
            module, tuple(requests), lambda exact, values: [apply(exact, each) for each in values]
        )

    run = bucketed if cell.shapes == "buckets" else passing
    made = _subject(cell, module, requests[0], run, reference, random, policies[cell.shapes])
    made = made._replace(
        baseline=lambda: passing(module), eager=lambda: passing(module), outputs=outputs
    )
    if cell.shapes != "marked":
        return made

    def marked() -> tuple[Call, Any]:
        _mark(requests, varying)
        return made.compile()

    return made._replace(compile=marked)


def _varying(requests: list[Inputs]) -> list[list[int]]:
    """For each leaf of the inputs, the dimensions whose size is not the same in all requests."""
    return [
        [dim for dim in range(same[0].dim()) if len({value.shape[dim] for value in same}) > 1]
        if isinstance(same[0], torch.Tensor)
        else []
        for same in zip(*map(tree_leaves, requests), strict=True)
    ]


def _bucket(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _pad(inputs: Inputs, varying: list[list[int]]) -> Inputs:
    """Each varying size filled up with zeros to its bucket."""
    leaves, structure = tree_flatten(inputs)
    padded = [
        torch.nn.functional.pad(value, _missing(value, dims)) if dims else value
        for value, dims in zip(leaves, varying, strict=True)
    ]
    return tree_unflatten(padded, structure)  # type: ignore[no-any-return]


def _missing(value: torch.Tensor, dims: list[int]) -> list[int]:
    """What `torch.nn.functional.pad` is to add: before and after, from the last dimension on."""
    amounts = (
        _bucket(value.shape[dim]) - value.shape[dim] if dim in dims else 0
        for dim in reversed(range(value.dim()))
    )
    return [each for amount in amounts for each in (0, amount)]


def _unpad(output: Any, inputs: Inputs, varying: list[list[int]]) -> Any:
    """The part of an output that belongs to the request: the first input's sizes rule."""
    if not isinstance(output, torch.Tensor) or not varying[0]:
        return output
    sizes = tree_leaves(inputs)[0].shape
    for dim in varying[0]:
        if dim < output.dim() and output.shape[dim] == _bucket(sizes[dim]):
            output = output.narrow(dim, 0, sizes[dim])
    return output


def _mark(requests: list[Inputs], varying: list[list[int]]) -> None:
    """Mark what varies. A size of one is left: Dynamo specialises it and refuses the mark."""
    for each in requests:
        for value, dims in zip(tree_leaves(each), varying, strict=True):
            for dim in dims:
                if value.shape[dim] > 1:
                    torch._dynamo.mark_dynamic(value, dim)
