"""timm: image models as published, with random weights (nothing is downloaded).

Speed does not depend on the weights' values, only on shapes and operators, so random ones serve;
they are seeded by the launch, so every launch runs the very same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import workload

if TYPE_CHECKING:
    from . import Built

CORE = ("resnet18", "mobilenetv3_small_100", "vit_tiny_patch16_224", "convnext_atto")


def build(name: str, batch_size: int) -> Built:
    """The timm model of that name, and one batch of random images at its own resolution.

    The input is float32 of shape (batch_size, channels, height, width).
    """
    import timm
    import torch

    model = timm.create_model(name, pretrained=False)
    channels, height, width = model.pretrained_cfg["input_size"]
    return model, (torch.randn(batch_size, channels, height, width),)


for _name in CORE:
    workload(_name, family="timm", imports=("timm",))(
        lambda batch_size, name=_name: build(name, batch_size)
    )
