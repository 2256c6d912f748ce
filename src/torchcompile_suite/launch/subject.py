"""The calls of a cell: what a launch times, and what the outputs are compared with.

The protocol in `measure` knows only `Subject`. The subclasses say what a call is: a forward pass, a
training step, or a pass over a stream of shapes.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from .. import workloads
from ..cell import Cell
from ..modes import EAGER
from ..request import Side
from . import failures, precision, state, ways
from .inputs import mapped
from .outputs import copied, tensors
from .precision import autocast
from .quantisation import quantised
from .state import State

SEED = 20240724
# Small, so that the weights stay near their start in a thousand steps.
LEARNING_RATE = 1e-5
# A training step is wrong if it is wrong with each of so many sets of weights. One set in six
# brings a value of resnet18 to a corner (evidence/plain/corners.py), five in a row one in 8,000.
SETS_OF_WEIGHTS = 5
# How far a weight of a set is from that of the set before, relative. All values of the network move
# by more than rounding can bridge, and the network stays what it is.
SPREAD = 0.01
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

# The contexts of an inference, from the usual one to the one in which any model runs.
CONTEXTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "inference": torch.inference_mode,
    "no-grad": torch.no_grad,
    "grad": contextlib.nullcontext,
}

Call = Callable[[], Any]
Inputs = tuple[Any, ...] | dict[str, Any]


class Subject:
    """The calls of a cell. `baseline`, `eager` and the compiled call take no arguments.

    - ``module``, ``inputs``: one forward call of the module that is compiled.
    - ``in_a_row``: a check makes its calls one after the other, so that later ones see the state
      that earlier ones leave. Else it puts the state back before each.
    - ``fresh_inputs``: each call finds the inputs as they were given, so they are no state.
    - ``dynamic``: the argument of torch.compile.
    - ``gradients``: the name of the context of an inference (`CONTEXTS`).
    - ``module_calls``: calls of the module in one call. ``shapes``: the different ones among them.

    The baseline and the compiled call enter the same number of Python frames, so that pairs compare
    like with like; `ForwardAgainstFloat32` and `Quantised` have one less in the baseline.
    """

    dynamic: bool | None = None
    in_a_row = True
    fresh_inputs = False
    gradients = "inference"
    module_calls = 1
    shapes = 1

    def __init__(self, cell: Cell, module: torch.nn.Module, inputs: Inputs) -> None:
        """Take a module and inputs that are on the cell's device."""
        self.cell = cell
        self.module = module
        self.inputs = inputs
        self._kept: State | None = None

    def call(self, forward: Any) -> Any:
        """One call, with the module or the compiled module as ``forward``."""
        raise NotImplementedError

    def baseline(self) -> Any:
        """The call that the compiled call is paired with."""
        return self.call(self.module)

    def eager(self) -> Any:
        """The same work as the compiled call, in eager."""
        return self.call(self.module)

    def compile(self) -> tuple[Call, Any]:
        """Set torch.compile up. Returns the call in the mode, which compiles when it first runs,
        and the compiled module.
        """
        forward = compiler(self.cell, self.dynamic)(self.module)
        return (lambda: self.call(forward)), forward

    def context(self) -> AbstractContextManager[Any]:
        """The context in which everything is called."""
        if self.cell.phase == "training" or self.cell.protocol in ("grad-on", "train-mode"):
            return contextlib.nullcontext()
        return CONTEXTS[self.gradients]()

    @contextlib.contextmanager
    def alone(self, side: Side) -> Iterator[bool]:  # noqa: ARG002 (a subclass uses it)
        """A context that tells whether the device's memory is that side's alone. What both sides
        use counts for both.
        """
        yield True

    def given(self) -> Any:
        """The inputs of all calls."""
        return self.inputs

    def reset(self, seed: int = SEED + 1) -> None:
        """Restore the state that calls to be compared must start from, and seed the generators.

        It is the state at the first reset. It is copied only then: a user's script has no copies.
        """
        if self._kept is None:
            self._kept = self._state()
        self._kept.restore()
        state.seed(seed)

    def changes(self) -> dict[str, torch.Tensor]:
        """The state that differs from that of `reset`, by its place in the module."""
        return self._kept.changes() if self._kept else {}

    def changed(self, changes: dict[str, torch.Tensor], names: Sequence[str]) -> list[Any]:
        """The state at these places after a call that has made ``changes``."""
        return self._kept.completed(changes, names) if self._kept else []

    def drawn(self) -> list[bytes]:
        """The state of all generators: first of those that all modules share."""
        return state.drawn(self.cell.device) + (self._kept.drawn() if self._kept else [])

    def touched(self) -> bool:
        """Whether the weights have changed since the first `reset`, which does not restore them."""
        return self._kept is not None and self._kept.touched()

    def keep_weights(self) -> None:
        """Let `reset` restore the weights, too, from now on."""
        self._kept = self._state(parameters=True)

    def _state(self, parameters: bool = False) -> State:
        return State(self.module, () if self.fresh_inputs else self.given(), parameters)

    def other_weights(self) -> bool:
        """Change the weights that `reset` restores. False if this is not done, or the limit
        is reached."""
        return False

    def outputs(self, result: Any) -> Any:
        """The part of a call's result that is compared."""
        return result

    def apart(self, result: Any) -> list[Any]:
        """The same, and all else that a check compares; each is compared apart."""
        return [self.outputs(result)]

    def in_float32(self) -> Any:
        """The outputs of the module before it was quantised."""
        raise NotImplementedError

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """What `apart` returns, of a call of a copy of the module in float64 with such inputs."""
        return [apply(module, given)]


class Forward(Subject):
    """One forward pass with the same inputs in every call."""

    def __init__(self, cell: Cell, module: torch.nn.Module, inputs: Inputs) -> None:
        """With the protocol ``data-inside``, each call makes its inputs anew."""
        self._fresh_inputs = cell.protocol == "data-inside"
        super().__init__(cell, module, inputs)

    def call(self, forward: Any) -> Any:
        """The outputs of the forward pass."""
        with autocast(self.cell):
            return apply(forward, self._made(self.inputs))

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """See `Subject.in_double`."""
        return [apply(module, self._made(given))]

    def _made(self, inputs: Inputs) -> Inputs:
        return tree_map(_fresh, inputs) if self._fresh_inputs else inputs


class ForwardAgainstFloat32(Forward):
    """A forward pass in another dtype, paired with eager in float32."""

    def baseline(self) -> Any:
        """The forward pass without the autocast region."""
        return apply(self.module, self.inputs)


class Quantised(ForwardAgainstFloat32):
    """A forward pass of a quantised module, paired with the module in float32 in eager."""

    def __init__(self, cell: Cell, module: torch.nn.Module, inputs: Inputs) -> None:
        """Quantises a copy of the module. Raises `failures.Unsupported` if that is not possible."""
        super().__init__(cell, quantised(module, cell.dtype), inputs)
        self._float32 = module

    def baseline(self) -> Any:
        """The forward pass of the module before it was quantised."""
        return apply(self._float32, self.inputs)

    @contextlib.contextmanager
    def alone(self, side: Side) -> Iterator[bool]:
        """See `Subject.alone`. The module in float32 leaves an accelerator meanwhile.

        The quantised one stays: its compiled code knows where its weights are.
        """
        if side == "eager" or self.cell.device == "cpu":
            yield False
            return
        # A weight that is made in inference mode would be another kind of tensor.
        with torch.inference_mode(False), torch.no_grad():
            self._float32.to("cpu")
        try:
            yield True
        finally:
            with torch.inference_mode(False), torch.no_grad():
                self._float32.to(self.cell.device)

    def in_float32(self) -> Any:
        """See `Subject.in_float32`."""
        return self.outputs(self.baseline())


class TrainingStep(Subject):
    """One optimizer step: forward and backward for each micro-batch, then AdamW."""

    in_a_row = False

    def __init__(
        self,
        cell: Cell,
        module: torch.nn.Module,
        inputs: Inputs,
        build: Callable[[], torch.nn.Module],
    ) -> None:
        """The module is in training mode. ``build`` makes the module as it was before any step."""
        super().__init__(cell, module, inputs)
        self._build = build
        self._optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE)
        self._start: dict[str, Any] | None = None
        self._last: Any = None
        self._sets = 1
        # CUDA graphs write gradients into their own memory, and the replay for the next micro-batch
        # overwrites them. So with several micro-batches the gradients need memory that stays.
        self._keep_gradients = cell.accumulation > 1
        self._clear(module.parameters())

    def call(self, forward: Any) -> Any:
        """The loss of the last micro-batch."""
        self._optimizer.zero_grad(set_to_none=not self._keep_gradients)
        for _ in range(self.cell.accumulation):
            loss = self._backward(forward, self.inputs, autocast(self.cell))
        self._optimizer.step()
        return loss

    def reset(self, seed: int = SEED + 1) -> None:
        """See `Subject.reset`. The weights are those before the first step.

        The number of steps before a check differs from launch to launch, and each check shall see
        the same weights. They are made again only now: a user's training loop has no second set.
        """
        if self._start is None:
            self._start = copy.deepcopy(self._build().state_dict())
        super().reset(seed)
        self.module.load_state_dict(self._start)

    def touched(self) -> bool:
        """A step changes all weights, and `reset` restores them."""
        return False

    def other_weights(self) -> bool:
        """See `Subject.other_weights`.

        A value may lie so near to a corner of ReLU or of max pooling that rounding decides its
        gradient. Then eager or the compiled module is wrong by up to 0.5 %, without a fault of the
        compiler. With other weights that value lies elsewhere; a wrong kernel stays wrong.
        """
        if self._sets == SETS_OF_WEIGHTS:
            return False
        self._sets += 1
        self.reset()
        torch.manual_seed(SEED + self._sets)
        with torch.no_grad():
            for weights in self.module.parameters():
                weights.mul_(1 + SPREAD * torch.randn_like(weights))
        self._start = copy.deepcopy(self.module.state_dict())
        return True

    def outputs(self, result: Any) -> Any:
        """The loss and all gradients."""
        return result, _gradients(self.module)

    def apart(self, result: Any) -> list[Any]:
        """The loss does not change if two of the outputs change places: they are looked at, too."""
        last, self._last = self._last, None
        return [self.outputs(result), last]

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """See `Subject.in_double`."""
        self._clear(module.parameters())
        for _ in range(self.cell.accumulation):
            loss = self._backward(module, given, contextlib.nullcontext())
        last, self._last = self._last, None
        return [(loss, _gradients(module)), last]

    def _backward(self, forward: Any, values: Inputs, context: AbstractContextManager[Any]) -> Any:
        with context:
            output = apply(forward, values)
            leaves = [leaf for leaf in tree_leaves(output) if torch.is_tensor(leaf)]
        loss = sum(leaf.to(_wide(leaf)).square().mean() for leaf in leaves or _opened(output))
        loss = loss / self.cell.accumulation
        loss.backward()
        if self._start is not None:  # a check: a timed step keeps nothing
            self._last = output
        return loss.detach()

    def _clear(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter) if self._keep_gradients else None


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
        self._keeps = False
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
            if self._keeps:
                kept.append(copied(apply(forward, request)))
            else:
                apply(forward, request)  # no name: nothing of it is alive at the next request
        return kept

    def _padded_call(self, forward: Any) -> list[Any]:
        def padded(*given: Any, **named: Any) -> Any:
            return apply(forward, _pad(named or given, self._varying))

        return self.call(padded)

    def reset(self, seed: int = SEED + 1) -> None:
        """See `Subject.reset`. The calls from now on keep their outputs."""
        super().reset(seed)
        self._keeps = True

    def compile(self) -> tuple[Call, Any]:
        """See `Subject.compile`. Marks the requests first, if the policy does so.

        Raises `failures.Unsupported` if this release lacks the policy.
        """
        if self.cell.shapes == "oblivious":
            _assume_no_size_of_one()
        self._mark(self.requests)
        call, forward = super().compile()
        if self.cell.shapes == "buckets":
            return (lambda: self._padded_call(forward)), forward
        return call, forward

    def serve(self, forward: Any, request: Inputs) -> Any:
        """The output of one request, in the way in which the compiled call makes it."""
        padded = self.cell.shapes == "buckets"
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
            _mark(requests, self._varying, 0, _mark_unbacked())

    def outputs(self, result: list[Any]) -> list[Any]:
        """The outputs without padding."""
        return [
            tree_map(lambda part, request=request: _unpad(part, request, self._varying), output)
            for output, request in zip(result, self.requests, strict=True)
        ]

    def given(self) -> Any:
        """See `Subject.given`."""
        return tuple(self.requests)

    def in_double(self, module: torch.nn.Module, given: Any) -> list[Any]:
        """See `Subject.in_double`."""
        return [[apply(module, request) for request in given]]


def build(cell: Cell) -> Subject:
    """Build the cell's workload on its device, with a fixed seed, and the calls of the cell.

    Raises `failures.Unsupported` if the workload lacks what the cell needs.
    """
    workload = workloads.get(cell.workload)

    def make() -> tuple[torch.nn.Module, Inputs]:
        torch.manual_seed(SEED)
        return workload.build(cell.batch_size)

    def placed(inputs: Inputs) -> Inputs:
        return precision.arranged(cell, to_device(inputs, cell.device))  # type: ignore[no-any-return]

    module, inputs = make()
    train = cell.phase == "training" or cell.protocol == "train-mode"
    ready(module, train, cell.device)
    precision.arrange(cell, module)
    inputs = placed(inputs)
    if cell.phase == "training":
        return TrainingStep(cell, module, inputs, lambda: make()[0])
    if cell.shapes != "static":
        if workload.stream is None:
            raise failures.Unsupported(f"workload {cell.workload!r} has no stream of shapes")
        requests_of = workload.stream
        # More shapes than Dynamo compiles of one function: `recompile_limit` is 8.
        factors = (1, 2) if cell.protocol == "many-calls" else (1,)

        def stream(size: int) -> list[Inputs]:
            requests = [request for factor in factors for request in requests_of(factor * size)]
            return [placed(request) for request in requests]

        return ShapeStream(cell, module, stream)
    if cell.quantised:
        return Quantised(cell, module, inputs)
    if cell.baseline == "eager-float32" and cell.dtype != "float32":
        return ForwardAgainstFloat32(cell, module, inputs)
    return Forward(cell, module, inputs)


def ready(module: torch.nn.Module, train: bool, device: str) -> None:
    """Set the module's mode and device, in place: a module of a user's own may return nothing.

    An exported module refuses `eval`, because its mode is fixed: it stays as it is. Raises
    `failures.Unsupported` if the module refuses to train, or to move.
    """
    try:
        module.train(train)
    except Exception as error:
        if train:
            raise _refused(module, "train()", error) from error
    if device == "cpu" and all(tensor.is_cpu for tensor in _weights(module)):
        return
    try:
        module.to(device)
    except (AttributeError, NotImplementedError, TypeError) as error:
        raise _refused(module, f"to({device!r})", error) from error


def _refused(module: torch.nn.Module, call: str, error: Exception) -> failures.Unsupported:
    reason = failures.one_line(f"{type(error).__name__}: {error}")
    return failures.Unsupported(f"{type(module).__name__} refuses {call}: {reason}")


def _weights(module: torch.nn.Module) -> Iterable[torch.Tensor]:
    return chain(module.parameters(), module.buffers())


def apply(forward: Callable[..., Any], inputs: Inputs) -> Any:
    """Call ``forward`` with the inputs: a tuple by position, a dict by name."""
    return forward(**inputs) if isinstance(inputs, dict) else forward(*inputs)


def to_device(inputs: Inputs, device: str) -> Inputs:
    """The inputs with all tensors on that device."""
    moved: Inputs = mapped(lambda tensor: tensor.to(device), inputs)
    return moved


def compiler(cell: Cell, dynamic: bool | None = None) -> Callable[[torch.nn.Module], Any]:
    """torch.compile with the cell's mode, backend and way; the identity for eager."""
    if cell.mode == EAGER:
        return lambda module: module
    options: dict[str, Any] = {"backend": cell.backend, "dynamic": dynamic}
    if cell.backend == "inductor":
        options["mode"] = cell.mode
    return lambda module: ways.compiled(cell, module, options)


def double(value: Any) -> Any:
    """A floating-point tensor in float64; any other value unchanged."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def _fresh(value: Any) -> Any:
    """A new tensor of the same kind; random numbers if it is floating-point."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.randn_like(value) if value.is_floating_point() else value.clone()


def _gradients(module: torch.nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in module.parameters() if p.grad is not None]


def _wide(leaf: torch.Tensor) -> torch.dtype:
    return leaf.dtype if leaf.dtype == torch.float64 else torch.float32


def _opened(output: Any) -> list[torch.Tensor]:
    """The tensors of an output that pytree does not open."""
    if leaves := tensors(output):
        return leaves
    raise failures.Unsupported("the module returns no tensor, so there is no loss to train on")


def _shapes(inputs: Inputs) -> tuple[torch.Size, ...]:
    return tuple(leaf.shape for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor))


def _varying(requests: list[Inputs]) -> list[list[int]]:
    """For each leaf of the inputs, the dimensions whose sizes differ between requests."""
    return [
        [dim for dim in range(same[0].dim()) if len({value.shape[dim] for value in same}) > 1]
        if isinstance(same[0], torch.Tensor)
        else []
        for same in zip(*map(tree_leaves, requests), strict=True)
    ]


def _bucket(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _pad(inputs: Inputs, varying: list[list[int]]) -> Inputs:
    """The inputs with each varying size padded with zeros up to its bucket."""
    leaves, structure = tree_flatten(inputs)
    padded = [
        torch.nn.functional.pad(value, _missing(value, dims)) if dims else value
        for value, dims in zip(leaves, varying, strict=True)
    ]
    return tree_unflatten(padded, structure)  # type: ignore[no-any-return]


def _missing(value: torch.Tensor, dims: list[int]) -> list[int]:
    """The argument of `torch.nn.functional.pad`: before and after, from the last dimension on."""
    amounts = (
        _bucket(value.shape[dim]) - value.shape[dim] if dim in dims else 0
        for dim in reversed(range(value.dim()))
    )
    return [padding for amount in amounts for padding in (0, amount)]


def _unpad(output: Any, inputs: Inputs, varying: list[list[int]]) -> Any:
    """The part of an output that belongs to the request, by the sizes of the first input."""
    if not isinstance(output, torch.Tensor) or not varying[0]:
        return output
    sizes = tree_leaves(inputs)[0].shape
    for dim in varying[0]:
        if dim < output.dim() and output.shape[dim] == _bucket(sizes[dim]):
            output = output.narrow(dim, 0, sizes[dim])
    return output


def _mark(
    requests: list[Inputs],
    varying: list[list[int]],
    smallest: int,
    mark: Callable[[torch.Tensor, int], object],
) -> None:
    """Mark the varying sizes that are not smaller."""
    for request in requests:
        for value, dims in zip(tree_leaves(request), varying, strict=True):
            for dim in dims:
                if value.shape[dim] >= smallest:
                    mark(value, dim)


def _mark_unbacked() -> Callable[[torch.Tensor, int], object]:
    mark = getattr(torch._dynamo.decorators, "mark_unbacked", None)
    if mark is None:
        raise failures.Unsupported(
            f"torch {torch.__version__} has no torch._dynamo.decorators.mark_unbacked"
        )
    return mark  # type: ignore[no-any-return]


def _assume_no_size_of_one() -> None:
    """The setting stays for the rest of the process: the first call compiles."""
    from torch.fx.experimental import _config

    if not hasattr(_config, "backed_size_oblivious"):
        raise failures.Unsupported(
            f"torch {torch.__version__} has no torch.fx.experimental._config.backed_size_oblivious"
        )
    _config.backed_size_oblivious = True
