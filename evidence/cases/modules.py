"""60 modules that nobody prepared: 40 of timm, 10 of torchvision, 10 of transformers.

Each name is a function without arguments that returns a module and its inputs. The weights are
random: nothing comes from a hub.
"""

# ruff: noqa: D103, SIM905 (the name of a factory says what it makes; 40 names need no 40 lines)

from __future__ import annotations

from functools import partial
from typing import Any

TIMM = (
    "convit_tiny coat_tiny crossvit_9_240 darknet21 davit_tiny densenet121 dla34 dpn48b"
    " edgenext_xx_small efficientformerv2_s0 mixnet_s efficientvit_b0 efficientvit_m0 fastvit_t8"
    " focalnet_tiny_lrf gernet_s halonet26t ghostnet_050 hgnetv2_b0 hiera_tiny_224"
    " inception_next_atto levit_128s mambaout_femto mobilevitv2_050 eca_nfnet_l0 pit_ti_224"
    " pvt_v2_b0 regnetx_002 repghostnet_050 repvit_m0_9 resnest14d rexnet_100 selecsls42"
    " skresnet18 swiftformer_xs tiny_vit_5m_224 visformer_tiny xcit_nano_12_p16_224"
    " eva02_tiny_patch14_224 swinv2_cr_tiny_224"
).split()


def _torchvision(module: str, name: str, inputs: Any, **options: Any) -> Any:
    import importlib

    build = getattr(importlib.import_module(f"torchvision.models.{module}"), name)
    return build(weights=None, **options), inputs


def _images(*sizes: int) -> Any:
    import torch

    return torch.rand(*sizes)


def fasterrcnn() -> Any:
    images = [_images(3, 240, 320), _images(3, 320, 240)]
    name = "fasterrcnn_mobilenet_v3_large_320_fpn"
    return _torchvision("detection", name, (images,), weights_backbone=None)


def ssdlite() -> Any:
    images = [_images(3, 320, 320)]
    name = "ssdlite320_mobilenet_v3_large"
    return _torchvision("detection", name, (images,), weights_backbone=None)


def fcos() -> Any:
    images = [_images(3, 160, 160)]
    options = {"weights_backbone": None, "min_size": 160, "max_size": 160}
    return _torchvision("detection", "fcos_resnet50_fpn", (images,), **options)


def retinanet() -> Any:
    images = [_images(3, 160, 160)]
    options = {"weights_backbone": None, "min_size": 160, "max_size": 160}
    return _torchvision("detection", "retinanet_resnet50_fpn", (images,), **options)


def lraspp() -> Any:
    inputs = (_images(2, 3, 160, 160),)
    name = "lraspp_mobilenet_v3_large"
    return _torchvision("segmentation", name, inputs, weights_backbone=None)


def deeplab() -> Any:
    inputs = (_images(2, 3, 160, 160),)
    name = "deeplabv3_mobilenet_v3_large"
    return _torchvision("segmentation", name, inputs, weights_backbone=None)


def fcn() -> Any:
    inputs = (_images(2, 3, 96, 96),)
    options = {"weights_backbone": None, "aux_loss": True}
    return _torchvision("segmentation", "fcn_resnet50", inputs, **options)


def s3d() -> Any:
    return _torchvision("video", "s3d", (_images(1, 3, 16, 224, 224),))


def r3d() -> Any:
    return _torchvision("video", "r3d_18", (_images(1, 3, 8, 64, 64),))


def raft() -> Any:
    pair = (_images(1, 3, 128, 128), _images(1, 3, 128, 128))
    return _torchvision("optical_flow", "raft_small", pair)


TORCHVISION = [fasterrcnn, ssdlite, fcos, retinanet, lraspp, deeplab, fcn, s3d, r3d, raft]

_SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 256,
}


def _transformers(name: str, config: Any, **inputs: Any) -> Any:
    import transformers

    return getattr(transformers, name)(config), inputs


def _tokens(rows: int = 2, length: int = 32) -> Any:
    import torch

    return torch.randint(1, 250, (rows, length))


def bert() -> Any:
    from transformers import BertConfig

    return _transformers("BertModel", BertConfig(**_SMALL), input_ids=_tokens())


def gpt2() -> Any:
    from transformers import GPT2Config

    config = GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=256)
    return _transformers("GPT2LMHeadModel", config, input_ids=_tokens())


def llama() -> Any:
    from transformers import LlamaConfig

    return _transformers("LlamaForCausalLM", LlamaConfig(**_SMALL), input_ids=_tokens())


def mixtral() -> Any:
    from transformers import MixtralConfig

    config = MixtralConfig(**_SMALL, num_key_value_heads=2, num_local_experts=4)
    return _transformers("MixtralForCausalLM", config, input_ids=_tokens())


def mamba() -> Any:
    from transformers import MambaConfig

    config = MambaConfig(hidden_size=64, num_hidden_layers=2, vocab_size=256)
    return _transformers("MambaForCausalLM", config, input_ids=_tokens())


def t5() -> Any:
    from transformers import T5Config

    config = T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=256)
    inputs = {"input_ids": _tokens(), "decoder_input_ids": _tokens(2, 8)}
    return _transformers("T5ForConditionalGeneration", config, **inputs)


def whisper() -> Any:
    from transformers import WhisperConfig

    config = WhisperConfig(
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        vocab_size=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        max_source_positions=100,
    )
    inputs = {"input_features": _images(1, 80, 200), "decoder_input_ids": _tokens(1, 8)}
    return _transformers("WhisperForConditionalGeneration", config, **inputs)


def wav2vec2() -> Any:
    from transformers import Wav2Vec2Config

    inputs = {"input_values": _images(2, 8000)}
    return _transformers("Wav2Vec2Model", Wav2Vec2Config(**_SMALL), **inputs)


def clip() -> Any:
    from transformers import CLIPConfig

    small = {key: value for key, value in _SMALL.items() if key != "vocab_size"}
    text = {**_SMALL, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    vision = {**small, "image_size": 64, "patch_size": 16}
    config = CLIPConfig(text_config=text, vision_config=vision)
    inputs = {"input_ids": _tokens(), "pixel_values": _images(2, 3, 64, 64)}
    return _transformers("CLIPModel", config, **inputs)


def deberta() -> Any:
    from transformers import DebertaV2Config

    config = DebertaV2Config(**_SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"])
    return _transformers("DebertaV2Model", config, input_ids=_tokens())


TRANSFORMERS = [bert, gpt2, llama, mixtral, mamba, t5, whisper, wav2vec2, clip, deberta]
FACTORIES = {factory.__name__: factory for factory in [*TORCHVISION, *TRANSFORMERS]}


def _timm(name: str) -> Any:
    import timm
    import torch

    model = timm.create_model(name)
    return model, (torch.rand(1, *model.default_cfg["input_size"]),)


def __getattr__(name: str) -> Any:
    if name in TIMM:
        return partial(_timm, name)
    raise AttributeError(name)
