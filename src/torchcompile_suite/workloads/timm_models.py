"""timm: published image models with random weights (nothing is downloaded).

Random weights are enough, because speed depends on shapes and operators and not on the weights'
values. Each launch sets the same seed, so all launches compute with the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import library, workload

if TYPE_CHECKING:
    from . import Built

# The models that a bare `asv run` measures, and their tags.
CORE = {
    "resnet18": (
        *("inference", "eager", "protocol", "default_heap"),
        *("freezing", "freezing_memory"),
    ),
    "mobilenetv3_small_100": ("inference", "default_heap"),
    "vit_tiny_patch16_224": ("inference",),
}
# A small convnext, the timm models of PyTorch's dashboard (benchmarks/dynamo/timm_models_list.txt),
# resnet50, and convmixer_1536_20, which is known to be slower compiled.
FULL = (
    "convnext_atto",
    "adv_inception_v3",
    "beit_base_patch16_224",
    "convnextv2_nano",
    "deit_base_distilled",
    "dm_nfnet_f0",
    "ghostnet_100",
    "inception_v3",
    "mobilenetv2_100",
    "mobilenetv3_large_100",
    "mobilevit_s",
    "nfnet_l0",
    "repvgg_a2",
    "swin_base_patch4_window7_224",
    "tf_efficientnet_b0",
    "visformer_small",
    "vit_base_patch14_dinov2",
    "vit_base_patch16_siglip",
    "resnet50",
    "convmixer_1536_20",
)
# Further tags of some models. Cold starts are those of a convolutional one and a transformer.
ALSO: dict[str, tuple[str, ...]] = {
    "resnet18": ("starts",),
    "mobilenetv3_small_100": ("freezing", "freezing_memory"),
    "vit_tiny_patch16_224": ("freezing", "freezing_memory", "quantisation", "regional", "starts"),
}
# Dashboard's name -> timm's name, where timm's is longer.
NAMES_IN_TIMM = {
    "deit_base_distilled": "deit_base_distilled_patch16_224",
    "vit_base_patch16_siglip": "vit_base_patch16_siglip_224",
}


def build(name: str, batch_size: int) -> Built:
    """The timm model of that name, and one batch of random images at the model's resolution.

    The input is float32 of shape (batch_size, channels, height, width).
    """
    import torch

    timm = library("timm")
    model = timm.create_model(NAMES_IN_TIMM.get(name, name), pretrained=False)
    channels, height, width = model.pretrained_cfg["input_size"]
    return model, (torch.randn(batch_size, channels, height, width),)


for _name in (*CORE, *FULL):
    workload(
        _name,
        family="timm",
        imports=("timm",),
        core=CORE.get(_name, ()),
        also=("training", *ALSO.get(_name, ())),
    )(lambda batch_size, name=_name: build(name, batch_size))
