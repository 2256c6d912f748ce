"""Small functions and the numbers that PyTorch's own tests expect of them on CUDA.

The names and the values are those of PyTorch's ``test/inductor/test_perf.py``: numbers of 4 bytes
that all kernels of the function read and write. The functions are written down here in our own
words. ``g``: the input needs gradients; ``i``: integers.

The tags themselves could not be read. What was read, in public copies of that file:

- of 2024: it uses ``requires_cuda`` of torch.testing, which 2.4.1 has and 2.9.1 has not;
- of a merge between 2.8 and 2.9 in a fork (ROCm/pytorch, commit 407564617cf1; version.txt of the
  fork has both numbers);
- the newest: it uses ``HardwareClassification`` of torch.testing, which 2.15.0 has and 2.9.1 has
  not.

Both sides of the merge and the newest copy have all values, and the same ones. Where the copy of
2024 differs is in `EARLIER`. A copy of early 2024 expects 2000 for number 6 of ``test_cat``, and
later copies 1000: since then Inductor joins up to 8 inputs, not 4
(``config.max_pointwise_cat_inputs``, 8 in 2.4.1).

Left out: tests of Triton kernels and of custom operators that the caller writes, tests on a CPU,
and those of sums over large tensors, for which the newest copy only gives a range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch.nn.functional import gelu, relu


class Expected(NamedTuple):
    """A value: its test, the number of the value in it, the function, its inputs and the value.

    ``train``: the value includes the backward pass of the mean of all outputs. ``settings``: of
    Inductor.
    """

    test: str
    number: int
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    value: int
    train: bool = False
    settings: Mapping[str, Any] = MappingProxyType({})


def _chain(a: Any) -> Any:
    for _ in range(3):
        a = a * a.sum(dim=1, keepdim=True)
    return a


def _around(x: Any) -> Any:
    x = x.cos()
    return torch.mm(x, x).cos()


def _mutate(a: Any, b: Any, c: Any) -> None:
    first = a.add(c)
    second = b.add(first)
    b.copy_(second)
    a.copy_(first)


def _twice(a: Any) -> Any:
    return torch.softmax(torch.softmax(a, dim=1), dim=1)


def _materialize(a: Any) -> Any:
    c = a.cos()
    e = c + a
    return torch.mm(c, c) + e, e


def _smaller(a: Any) -> Any:
    c = a.cos()
    return torch.mm(c, c) + c.sum(dim=1)


def _either(a: Any) -> Any:
    c = a.cos()
    return torch.mm(c, c) + c.cos()


def _between(a: Any) -> Any:
    a = torch.mm(a, a) + 1
    return torch.mm(a, a + 2)


def _fourfold(x: Any) -> Any:
    for _ in range(2):
        square = x * x
        x = x + torch.mm(square, square) * 2
    return x


class _Saved(torch.autograd.Function):  # type: ignore[misc]
    """Saves a view for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        sine, cosine = x.sin(), x.cos().view(10, 10)
        ctx.save_for_backward(cosine, sine)
        return cosine.cos()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        cosine, sine = ctx.saved_tensors
        return torch.mm(gradient, cosine).view(100) * sine


def _not_fused(a: Any) -> Any:
    """An operator that Inductor calls as it is."""
    return torch.ops.aten._lazy_clone(a)


def _cloned(a: Any) -> Any:
    a = a.clone()
    return a, _not_fused(a)


def _scatter(a: Any, b: Any) -> Any:
    a = a.cos()
    a[b] = 1
    return a


def _scatter_columns(a: Any, b: Any) -> Any:
    a[:, b] = 1
    return a


def _scatter_by(put: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: a.copy_(put(a, (b,), torch.tensor(1.0)))


def _scatter_at_random(x: Any, y: Any, scale: Any) -> Any:
    index = torch.randperm(x.shape[0], device=x.device)[: y.shape[0]]
    return x.index_add_(dim=0, source=y * scale, index=index)


def _ones(*_: Any) -> Any:
    return (torch.ones(10, device="cpu") + torch.ones(10, 10, device="cpu")).sum(dim=-1)


def _soft(a: Any, b: Any) -> Any:
    return torch.cat([torch.softmax(a, dim=-1), torch.softmax(b, dim=-1)])


_LAYER_NORM = torch.nn.LayerNorm(10).requires_grad_(False)
_S = "10x10"
# What the tests of many inputs to a cat set.
_BATCHED = {
    "split_cat_fx_passes": False,
    "pre_grad_fusion_options": {
        f"batch_{name}": {} for name in ("linear", "linear_lhs", "layernorm", "tanh", "relu")
    }
    | {"batch_sigmoid": {}},
    "post_grad_fusion_options": {},
}
_NO_PATTERNS = {"pattern_matcher": False, "realize_opcount_threshold": 0}

VALUES = (
    Expected("test_pointwise", 0, lambda x: x.cos(), ("10",), 20),
    Expected("test_pointwise", 1, lambda x, y: x + y, ("10", "10"), 30),
    Expected("test_pointwise", 2, lambda x, y: x + y, (_S, "10"), 210),
    Expected("test_pointwise", 3, lambda x: x + x, ("10",), 20),
    Expected("test_pointwise", 4, lambda x: x + x.t(), (_S,), 200),
    Expected("test_pointwise", 5, lambda a, b, c: (a.cos(), b.sin() + c.sin()), ("10",) * 3, 50),
    Expected("test_reduction", 0, lambda x: x.sum(dim=1), (_S,), 110),
    Expected("test_reduction", 1, lambda x: x.sum(dim=0), (_S,), 110),
    Expected("test_extern", 0, lambda x: torch.mm(x, x), (_S,), 200),
    Expected("test_extern", 1, torch.mm, (_S, _S), 300),
    Expected("test_extern", 2, _around, (_S,), 600),
    Expected("test_extern", 3, lambda x: torch.mm(x.cos(), x.sin()), (_S,), 600),
    Expected("test_cat", 0, lambda a, b: torch.cat([a.sin(), b.sin()]), ("10", "10"), 40),
    Expected("test_cat", 1, lambda a, b: torch.cat([a, b]), ("10", "10"), 40),
    Expected("test_cat", 2, lambda a, b: torch.cat([a.cos(), b]), ("10", "10"), 40),
    Expected("test_cat", 3, lambda a: torch.cat([a.cos(), a.sin()]), ("10",), 30),
    Expected("test_cat", 4, lambda a, b: torch.cat([torch.mm(a, a), b.sin()]), (_S, _S), 400),
    Expected("test_cat", 5, lambda a, b, c: torch.cat((a + 1, b + 2, c + 3)) + 10, (_S,) * 3, 600),
    Expected(
        "test_cat",
        6,
        lambda *parts: torch.cat([part + at for at, part in enumerate(parts, 1)]) + 10,
        (_S,) * 5,
        1000,
    ),
    Expected(
        "test_cat",
        7,
        lambda a, b: torch.cat([a.sum(dim=0), b.sum(dim=0)]) + 10,
        ("10x10x10",) * 2,
        2600,
    ),
    Expected("test_cat_pointwise", 0, _soft, (_S, _S), 400),
    Expected("test_cat_pointwise", 1, lambda a, b: _soft(a, b).cos(), (_S, _S), 680),
    Expected(
        "test_cat_pointwise",
        2,
        lambda a, b: torch.cat([a.cos(), torch.mm(b, b)]).cos(),
        (_S, _S),
        600,
    ),
    Expected(
        "test_cat_pointwise",
        3,
        lambda a, b: torch.cat([torch.mm(a, a), torch.mm(b, b)]).cos(),
        (_S, _S),
        800,
    ),
    Expected("test_cat_pointwise", 4, lambda a, b: torch.cat([a, b]).cos(), (_S, _S), 400),
    Expected("test_cat_pointwise", 5, lambda a, b: torch.cat([a, b.cos()]), (_S, _S), 400),
    Expected(
        "test_cat_pointwise",
        6,
        lambda a, b: torch.constant_pad_nd(torch.cat([a @ a, b]), [2, 2], 0.5),
        (_S, _S),
        680,
    ),
    Expected(
        "test_cat_pointwise_many_complex_inputs",
        0,
        lambda *parts: torch.cat([gelu(part) for part in parts]) + 10,
        (_S,) * 16,
        6400,
        settings=_BATCHED,
    ),
    Expected(
        "test_cat_pointwise_many_simple_inputs",
        0,
        lambda *parts: torch.cat([relu(part) for part in parts]) + 10,
        (_S,) * 16,
        9600,
        settings=_BATCHED,
    ),
    Expected(
        "test_cat_pointwise_config_option",
        0,
        lambda a, b: torch.cat([a + 1, b + 2]) + 3,
        (_S, _S),
        400,
        settings={"max_pointwise_cat_inputs": 0},
    ),
    Expected("test_index", 0, lambda a, b: a[b], ("10", "10i"), 30),
    Expected(
        "test_horizontal_reduction_pointwise", 0, lambda a: (a.sum(dim=1), a.cos()), (_S,), 210
    ),
    Expected(
        "test_horizontal_reduction_reduction",
        0,
        lambda a: (a.sum(dim=1), a.amax(dim=1)),
        (_S,),
        120,
    ),
    Expected(
        "test_horizontal_reduction_pointwise2",
        0,
        lambda a, b: b.cos() + a.sum(dim=1),
        (_S, "10"),
        120,
    ),
    Expected(
        "test_horizontal_reduction_outer_pointwise",
        0,
        lambda a, b: b.cos() + a.sum(dim=0),
        (_S, "10"),
        120,
    ),
    Expected(
        "test_horizontal_sum_pw_broadcast",
        0,
        lambda a, b: a.sum(dim=1, keepdim=True) * b.cos(),
        (_S, "10"),
        210,
    ),
    Expected("test_vertical_sum_pw", 0, lambda a: a.cos().sum(dim=1).cos(), (_S,), 110),
    Expected("test_norm_chain", 0, _chain, (_S,), 200),
    Expected("test_softmax_inner", 0, lambda a: torch.softmax(a, dim=1), (_S,), 200),
    Expected("test_layer_norm", 0, lambda a: _LAYER_NORM(a), (_S,), 220),
    Expected("test_double_softmax", 0, _twice, (_S,), 200),
    Expected(
        "test_softmax_backward",
        0,
        lambda a, b: torch.ops.aten._softmax_backward_data(a, b, 1, torch.float32),
        (_S, _S),
        300,
    ),
    Expected(
        "test_neighbor",
        0,
        lambda a, b: ((a - b) ** 2).sum(dim=-1).amax(dim=1),
        ("10x1x4", "1x10x4"),
        90,
    ),
    Expected("test_factory_reduction", 0, _ones, (), 10),
    Expected("test_index_pointwise", 0, lambda a, b: a[b].cos(), (_S, "20i"), 320),
    Expected("test_index_reduction", 0, lambda a, b: a[b].cos().sum(dim=1), (_S, "20i"), 140),
    Expected("test_mutation_fusion", 0, _mutate, (_S,) * 3, 500),
    Expected("test_fusion_choice1", 0, _either, (_S,), 700, settings=_NO_PATTERNS),
    Expected("test_fusion_choice2", 0, _smaller, (_S,), 620, settings=_NO_PATTERNS),
    Expected("test_fusion_choice3", 0, _materialize, (_S,), 800, settings=_NO_PATTERNS),
    Expected("test_tiling_simple", 0, lambda a, b: a + b.t(), (_S, _S), 300),
    Expected("test_tiling_simple", 1, lambda a, b: a.t() + b, (_S, _S), 300),
    Expected(
        "test_tiling_three",
        0,
        lambda a, b, c: a + b.permute(1, 2, 0) + c.permute(2, 0, 1),
        ("10x10x10",) * 3,
        4000,
    ),
    Expected("test_partitioning_full_remat", 0, lambda x: x.cos().cos().cos(), ("10g",), 50, True),
    Expected(
        "test_partitioning_partial_remat",
        0,
        lambda a, b, c, d: (a + b + c + d).cos().cos(),
        ("10g",) * 4,
        90,
        True,
    ),
    Expected("test_partitioning_dtype", 0, lambda x: (x < 0) * x, ("100g",), 450, True),
    Expected(
        "test_partitioning_unremat_bw2",
        0,
        _between,
        ("10x10g",),
        2600,
        True,
        {"pattern_matcher": False},
    ),
    Expected(
        "test_partitioning_keops",
        0,
        lambda a, b: (a * b).cos().sum(dim=1),
        ("20x1g", "1x20g"),
        220,
        True,
    ),
    Expected(
        "test_partitioning_cat",
        0,
        lambda a, b: torch.cat([torch.tanh(a), b]),
        ("10g", "10g"),
        70,
        True,
    ),
    Expected("test_partitioning_relu", 0, lambda x: torch.relu(x), ("16g",), 72, True),
    Expected(
        "test_partitioning_unremat_bw",
        0,
        lambda x: torch.mm(x, x.new_ones(x.shape)).tanh().tanh(),
        ("10x10g",),
        1300,
        True,
    ),
    Expected("test_partitioning_with_view", 0, lambda a: _Saved.apply(a), ("100g",), 900, True),
    Expected(
        "test_partitioning_long_chain_add",
        0,
        _fourfold,
        ("10x10g",),
        3900,
        True,
        {"pattern_matcher": False},
    ),
    Expected("test_noop_clones", 0, lambda a: _not_fused(a.clone()), ("10",), 20),
    Expected("test_noop_clones", 1, _cloned, ("10",), 40),
    Expected(
        "test_noop_slice_scatter",
        0,
        lambda a: _not_fused(torch.ops.aten.slice_scatter(a, a)),
        ("10",),
        20,
    ),
    Expected(
        "test_noop_dtype_conversion",
        0,
        lambda a: _not_fused(torch.ops.prims.convert_element_type(a, torch.float32)),
        ("10",),
        20,
    ),
    Expected(
        "test_noop_device_conversion",
        0,
        lambda a: _not_fused(torch.ops.prims.device_put(a, "cpu")),
        ("10",),
        20,
    ),
    Expected("test_noop_int_ops", 0, lambda a: _not_fused(torch.ceil(a)), ("10i",), 20),
    Expected("test_noop_int_ops", 1, lambda a: _not_fused(torch.floor(a)), ("10i",), 20),
    Expected("test_noop_int_ops", 2, lambda a: _not_fused(torch.round(a)), ("10i",), 20),
    Expected("test_noop_int_ops", 3, lambda a: _not_fused(torch.pow(a, 1)), ("10i",), 20),
    Expected("test_noop_cat", 0, lambda a: _not_fused(torch.cat([a])), ("10",), 20),
    Expected("test_noop_cat", 1, lambda a: torch.cat([torch.cat([a])]), ("10",), 20),
    Expected("test_inplace_scatter", 0, _scatter, ("10", "2i"), 26),
    Expected("test_inplace_scatter", 1, _scatter_by(torch.ops.aten.index_put), ("10", "2i"), 6),
    Expected(
        "test_inplace_scatter", 2, _scatter_by(torch.ops.aten._unsafe_index_put), ("10", "2i"), 6
    ),
    Expected("test_inplace_scatter_noop_view", 0, _scatter_columns, (_S, "2i"), 42),
    Expected("test_inplace_randperm_scatter", 0, _scatter_at_random, (_S, "5x10", "10"), 250),
)

EARLIER: Mapping[tuple[str, int], int | None] = {
    ("test_cat_pointwise", 6): None,
    ("test_partitioning_relu", 0): None,
    ("test_inplace_randperm_scatter", 0): 240,
}
"""What the copy of 2024 expects where it differs from the later copies; None: it lacks the value.

It counts for the releases of 2024, up to 2.5.
"""


def expected(value: Expected, release: tuple[int, ...]) -> int | None:
    """What PyTorch's test expects on that release, such as (2, 9); None: it has no such value."""
    if release < (2, 6):
        return EARLIER.get((value.test, value.number), value.value)
    return value.value
