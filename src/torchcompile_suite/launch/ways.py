"""What is compiled, and how: the values of `Cell.way`.

- ``whole``: the module, by `torch.compile`.
- ``freezing``: the same, with the weights as constants of the generated code.
- ``regional``: only the block that the module repeats. The rest runs in eager.
- ``nested-region``: the whole module. The block that it repeats is a region that Inductor compiles
  once (`torch.compiler.nested_compile_region`).
- ``as-given``: what the user's code compiles, with its own options.

What a release lacks is found by looking for it, and is `failures.Unsupported` with a reason.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeAlias

import torch

from ..cell import Cell
from . import failures, original

# Keyword arguments of torch.compile.
Options: TypeAlias = Mapping[str, Any]
_Compile: TypeAlias = Callable[[torch.nn.Module, Options], Any]


def compiled(cell: Cell, module: torch.nn.Module, options: Options) -> Any:
    """The module, compiled in the cell's way. It is called like the module, which stays as it is.

    The first call compiles. Raises `failures.Unsupported` if the way does not exist for this
    module, in this release, or in this context.
    """
    return _WAYS[cell.way](module, options)


def repeated_blocks(module: torch.nn.Module) -> list[torch.nn.Module]:
    """The block that the module repeats: equal siblings in a ModuleList or a Sequential.

    Siblings are equal if they have the same class and weights of the same names, shapes and dtypes.
    A block has weights and modules of its own. If there are several sets of siblings, the set with
    the most numbers in its weights is returned, of equal sets the outermost. Empty if there is
    none.
    """
    sets: list[list[torch.nn.Module]] = []
    for container in module.modules():
        if isinstance(container, torch.nn.ModuleList | torch.nn.Sequential):
            equal: dict[Any, list[torch.nn.Module]] = defaultdict(list)
            # A module that stands in the container twice is one block.
            for block in dict.fromkeys(container.children()):
                if any(True for _ in block.children()) and _numbers(block):
                    equal[_likeness(block)].append(block)
            sets += [blocks for blocks in equal.values() if len(blocks) > 1]
    return max(sets, key=lambda blocks: len(blocks) * _numbers(blocks[0]), default=[])


def _likeness(block: torch.nn.Module) -> Any:
    """Equal for equal blocks."""
    weights = chain(block.named_parameters(), block.named_buffers())
    return type(block), tuple((name, weight.shape, weight.dtype) for name, weight in weights)


def _numbers(block: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in block.parameters())


def twin(module: torch.nn.Module) -> torch.nn.Module:
    """The same module in other objects, which share its weights and buffers.

    Compiling the blocks of the twin leaves the module as it is: on an accelerator, eager runs in
    the same process, and everywhere the output is compared with that of the module in eager. Raises
    `failures.Unsupported` if the module cannot be copied.
    """
    shared = {id(tensor): tensor for tensor in chain(module.parameters(), module.buffers())}
    try:
        return copy.deepcopy(module, shared)
    except Exception as error:
        reason = failures.one_line(f"{type(error).__name__}: {error}")
        raise failures.Unsupported(
            f"the module cannot be copied to compile its blocks apart: {reason}"
        ) from error


def _whole(module: torch.nn.Module, options: Options) -> Any:
    return torch.compile(module, **options)


def _freezing(module: torch.nn.Module, options: Options) -> Any:
    """Constants are folded and weights are packed once, when the code is generated.

    The setting stays for the rest of the process. The first call compiles, and Dynamo asks for the
    setting too, to keep the weights out of the graph's inputs: ``options=`` would reach Inductor
    only, and a patch around `torch.compile` neither of them.
    """
    if options["backend"] != "inductor":
        raise failures.Unsupported(f"backend {options['backend']} does not freeze: Inductor does")
    if torch.is_grad_enabled() or module.training:
        raise failures.Unsupported(
            "freezing makes constants of the weights: it needs eval() and calls without gradients"
        )
    from torch._inductor import config

    config.freezing = True
    return torch.compile(module, **options)


def _regional(module: torch.nn.Module, options: Options) -> Any:
    """One graph serves all blocks, because its guards do not name the module.

    In 2.4 a setting decides on that, which PyTorch's recipe "Reducing torch.compile cold start
    compilation time with regional compilation" tells its users to set. Since 2.5 it is the default.
    """
    whole, blocks = _with_blocks(module)
    # A TorchVersion, which compares with version texts. A nightly counts as its release.
    if torch.__version__ < "2.5.dev0":
        from torch._dynamo import config

        config.inline_inbuilt_nn_modules = True
    for block in blocks:
        block.compile(**options)
    return whole


def _nested_region(module: torch.nn.Module, options: Options) -> Any:
    mark = getattr(torch.compiler, "nested_compile_region", None)
    if mark is None:
        raise failures.Unsupported(
            f"torch {torch.__version__} has no torch.compiler.nested_compile_region"
        )
    whole, blocks = _with_blocks(module)
    # The region is a function, and the same one for all blocks: Dynamo knows it by that.
    block_class = type(blocks[0])
    region = type(block_class.__name__, (block_class,), {"forward": mark(block_class.forward)})
    for block in blocks:
        block.__class__ = region
    return torch.compile(whole, **options)


def _as_given(module: torch.nn.Module, options: Options) -> Any:  # noqa: ARG001 (all have both)
    given = original.as_given(module)
    if given is None:
        raise failures.Unsupported("the module's code compiles nothing")
    given.put(compiled=True)
    return given.module


def _with_blocks(module: torch.nn.Module) -> tuple[torch.nn.Module, list[torch.nn.Module]]:
    """A twin of the module, and the blocks that it repeats."""
    if not repeated_blocks(module):
        raise failures.Unsupported(
            f"{type(module).__name__} repeats no block: no ModuleList or Sequential has two equal "
            "modules with modules of their own"
        )
    whole = twin(module)
    return whole, repeated_blocks(whole)


_WAYS: dict[str, _Compile] = {
    "whole": _whole,
    "freezing": _freezing,
    "regional": _regional,
    "nested-region": _nested_region,
    "as-given": _as_given,
}
