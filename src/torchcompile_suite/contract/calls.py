"""The calls of a check: a model, compiled as it is or by torch.compile, with inputs of any form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..launch import original, values

# Each input comes twice. What changes from call to call, such as an attribute that counts up, only
# shows in a second call.
PASSES = 2


def inputs_of(given: Sequence[Any]) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of each call, by position and by name.

    A list is several calls. Of one call, a tuple is the arguments by position, a mapping those by
    name, and anything else is the one argument.
    """
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for each in given:
        for one in each if isinstance(each, list) else [each]:
            if isinstance(one, tuple):
                calls.append((one, {}))
            elif isinstance(one, Mapping):
                calls.append(((), dict(one)))
            else:
                calls.append(((one,), {}))
    return calls


def compiled(model: Any, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The model as torch.compile makes it; as it is, if it is compiled already."""
    import torch

    in_place = getattr(model, "_compiled_call_impl", None) is not None  # Module.compile()
    if original.is_compiled(model) or in_place:
        if options:
            raise TypeError(f"the model is compiled already: leave out {', '.join(options)}")
        return model  # type: ignore[no-any-return]
    return torch.compile(model, **options)  # type: ignore[no-any-return]


def make(
    call: Callable[..., Any],
    given: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    *,
    backward: bool = False,
    after: Callable[[], object] = lambda: None,
) -> None:
    """Call it with each input, `PASSES` times. An input that a call has changed comes as it was.

    ``backward``: compute gradients after each call, of the sum of all outputs that have any.
    ``after``: is called after each call.
    """
    inputs = list(given)
    kept = [_copied(one) for one in inputs]
    for _ in range(PASSES):
        for number, as_given in enumerate(kept):
            if as_given is not None and _changed(inputs[number], as_given):
                inputs[number] = values.copied(as_given)
            by_position, by_name = inputs[number]
            output = call(*by_position, **by_name)
            if backward:
                _backward(output)
            after()


def device_of(given: Sequence[Any]) -> str:
    """The kind of the device on which the tensors of the inputs are."""
    kinds = {tensor.device.type for tensor in values.opened(list(given))} - {"cpu", "meta"}
    return "+".join(sorted(kinds)) or "cpu"


def _changed(one: Any, as_given: Any) -> bool:
    """Whether a call has changed its inputs; False for those that cannot be compared."""
    try:
        return values.changed(one, as_given)
    except Exception:
        return False


def _copied(one: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """A copy of the inputs of a call; None if they cannot be copied."""
    try:
        return values.copied(one)
    except Exception:
        return None


def _backward(output: Any) -> None:
    sums = [each.sum() for each in values.tensors(output) if each.requires_grad]
    if sums:
        sum(sums[1:], sums[0]).backward()
