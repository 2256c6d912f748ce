"""What a call does in eager: operators dispatched, and the bytes that they read and write."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Traffic(TorchDispatchMode):  # type: ignore[misc]
    """Counts, while it is entered, every ATen operator that touches memory.

    An operator moves each tensor it takes and each it returns once. Views and what only makes a
    tensor without filling it move nothing.
    """

    def __init__(self) -> None:
        """Start at zero."""
        super().__init__()
        self.operators = 0
        self.bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run the operator and count it, or what it is made of.

        In inference mode operators such as dropout arrive whole, as `torch.utils.flop_counter`
        meets them, too.
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
