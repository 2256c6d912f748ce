"""The operators that a call dispatches in eager, and the bytes that they read and write."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Traffic(TorchDispatchMode):  # type: ignore[misc]
    """A context that counts the ATen operators that read or write memory.

    An operator reads each of its input tensors once and writes each of its results once. Views do
    neither, and operators that only reserve memory (``empty``) are not counted.
    """

    def __init__(self) -> None:
        """Start at zero."""
        super().__init__()
        self.operators = 0
        self.bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run the operator and count it, or count the operators that it decomposes into.

        In inference mode, operators such as dropout are dispatched without being decomposed;
        `torch.utils.flop_counter` decomposes them in the same way.
        """
        kwargs = kwargs or {}
        with self:
            result = function.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = function(*args, **kwargs)
        if not function.is_view and "empty" not in function._schema.name:
            self.operators += 1
            self.bytes += sum(
                leaf.numel() * leaf.element_size()
                for leaf in (*tree_leaves((args, kwargs)), *tree_leaves(result))
                if isinstance(leaf, torch.Tensor)
            )
        return result
