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
    "mobilenetv3_small_100": ("inference",),
    "vit_tiny_patch16_224": ("inference",),
}
# A small convnext, the timm models of PyTorch's dashboard (benchmarks/dynamo/timm_models_list.txt;
# SigLIP for smaller images), resnet50, and convmixer_1536_20, which is known to be slower compiled.
FULL = (
    *("convnext_atto", "adv_inception_v3", "beit_base_patch16_224", "convnextv2_nano"),
    *("deit_base_distilled", "dm_nfnet_f0", "ghostnet_100", "inception_v3", "mobilenetv2_100"),
    *("mobilenetv3_large_100", "mobilevit_s", "nfnet_l0", "repvgg_a2"),
    *("swin_base_patch4_window7_224", "tf_efficientnet_b0", "visformer_small"),
    *("vit_base_patch14_dinov2", "vit_base_patch16_siglip", "resnet50", "convmixer_1536_20"),
)
# The smallest variant of each further architecture of timm, or the one that people name. Some begin
# large: the image encoders of language models have 87 to 412 million parameters.
ARCHITECTURES = (
    *("bat_resnext26ts", "botnet26t_256", "caformer_s18", "cait_xxs24_224", "coat_lite_tiny"),
    *("coatnet_pico_rw_224", "convformer_s18", "convit_tiny", "convnext_tiny", "cpubone_nano"),
    *("crossvit_tiny_240", "cs3darknet_s", "csatv2", "cspnext_tiny", "cspresnet50", "darknet17"),
    *("davit_tiny", "deepseek_vit_412m", "deit3_small_patch16_224", "deit_tiny_patch16_224"),
    *("densenet121", "dla46_c", "dpn48b", "ecaresnet26t", "edgenext_xx_small"),
    *("efficientformer_l1", "efficientformerv2_s0", "efficientnet_b0", "efficientnetv2_rw_t"),
    *("efficientvim_m1", "efficientvit_b0", "efficientvit_m0", "ese_vovnet19b_dw"),
    *("eva02_tiny_patch14_224", "fasternet_t0", "fastvit_t8", "fbnetc_100", "flexivit_small"),
    *("focalnet_tiny_srf", "gcresnext26ts", "gcvit_xxtiny", "gemma4_vit_167m", "gernet_s"),
    *("ghostnetv2_100", "gmixer_12_224", "gmlp_ti16_224", "halonet_h1", "hardcorenas_a"),
    *("hgnetv2_b0", "hiera_tiny_224", "hieradet_small", "hrnet_w18_small", "iformer_t"),
    *("inception_next_atto", "inception_resnet_v2", "inception_v4", "lambda_resnet26t"),
    *("lcnet_050", "lcnetv2_small", "legacy_seresnet18", "legacy_xception", "levit_128s"),
    *("lowformer_b0", "mambaout_femto", "maxvit_pico_rw_256", "maxxvit_rmlp_nano_rw_256"),
    *("mixer_s16_224", "mixnet_s", "mnasnet_small", "mobilenet_edgetpu_v2_xs", "mobilenetv1_100"),
    *("mobilenetv4_conv_small", "mobilenetv5_base", "mobileone_s0", "mobilevitv2_050"),
    *("mvitv2_tiny", "naflexvit_base_patch16_gap", "nasnetalarge", "nest_tiny", "nextvit_small"),
    *("nf_regnet_b0", "pit_ti_224", "pnasnet5large", "poolformer_s12", "pvt_v2_b0"),
    *("qwen3_vit_88m", "rdnet_tiny", "regnetx_002", "regnety_002", "regnetz_b16"),
    *("repghostnet_050", "repvit_m0_9", "res2net50_14w_8s", "resmlp_12_224", "resnest14d"),
    *("resnetv2_18", "resnext26ts", "resnext50_32x4d", "rexnet_100", "samvit_base_patch16_224"),
    *("selecsls42", "semnasnet_050", "sequencer2d_s", "seresnext26d_32x4d", "shvit_s1"),
    *("skresnet18", "spnasnet_100", "starnet_s1", "swiftformer_xs", "swin_tiny_patch4_window7_224"),
    *("swinv2_cr_tiny_224", "swinv2_tiny_window8_256", "tiny_vit_5m_224", "tinynet_e"),
    *("tnt_s_patch16_224", "tresnet_m", "twins_svt_small", "vgg11", "visformer_tiny"),
    *("vit_base_patch16_224", "vit_srelpos_small_patch16_224", "vit_tiny_r_s16_p8_224"),
    *("vitamin_small_224", "volo_d1_224", "wide_resnet50_2", "xception41", "xcit_nano_12_p16_224"),
)
# Further tags of some models. Cold starts are those of a convolutional one and a transformer.
ALSO: dict[str, tuple[str, ...]] = {
    "resnet18": ("starts",),
    "mobilenetv3_small_100": ("freezing", "freezing_memory"),
    "vit_tiny_patch16_224": ("freezing", "freezing_memory", "quantisation", "regional", "starts"),
}
# The suite's name -> timm's name, where timm's is longer.
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


for _name in (*CORE, *FULL, *ARCHITECTURES):
    workload(
        _name,
        family="timm",
        imports=("timm",),
        core=CORE.get(_name, ()),
        also=("training", *ALSO.get(_name, ())),
    )(lambda batch_size, name=_name: build(name, batch_size))
