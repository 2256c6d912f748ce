"""What is published: the series of the history, and the releases whose core is measured.

A series is one cell in the newest patch of every minor release, measured in turns on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from .cell import DEFAULT_HEAP, Cell
from .matrix import TRAINING_BATCH
from .modes import EAGER

_CONVOLUTION_NETS = ("resnet18", "mobilenetv3_small_100", "mobilenetv2_100", "convnext_atto")
_VISION_TRANSFORMERS = ("vit_tiny_patch16_224", "vit16x6x384")
_MODELS = (
    *_CONVOLUTION_NETS,
    *_VISION_TRANSFORMERS,
    *("gpt_prefill", "gpt_decode"),
    *("operator_stochastic", "operator_deterministic"),
    *("relevance_information", "relevance_salience", "relevance_query"),
    *("softmax_matmul", "pointwise_chain", "branch_on_value"),
)
_TRAINED = (
    *("resnet18", "mobilenetv3_small_100", "vit_tiny_patch16_224", "vit16x6x384"),
    *("gpt_prefill", "relevance_information"),
)
# Eager against eager is the noise floor. Two models of different families show it.
_NOISE_FLOOR = ("resnet18", "vit16x6x384")


def _series() -> Iterator[Cell]:
    for model in _MODELS:
        yield Cell(model, 1, "default")
    # The other batch size, then the other modes: what most readers ask next.
    for model in (*_CONVOLUTION_NETS, *_VISION_TRANSFORMERS):
        yield Cell(model, 8, "default")
    # What a call costs beyond its kernels.
    yield Cell("small_1x1", 1, "default")
    for model in _MODELS:
        yield Cell(model, 1, "max-autotune")
    for model in _TRAINED:
        yield Cell(model, TRAINING_BATCH, "default", phase="training")
    for model in _CONVOLUTION_NETS:
        yield Cell(model, 1, "default", allocator=DEFAULT_HEAP)
    for model in _MODELS:
        yield Cell(model, 1, "reduce-overhead")
    for model in _NOISE_FLOOR:
        yield Cell(model, 1, EAGER)


SERIES = tuple(_series())
"""The cells of the published history, most informative first."""

CORE_OF = ("v2.4", "v2.9", "v2.15")
"""The releases whose whole core is published."""
