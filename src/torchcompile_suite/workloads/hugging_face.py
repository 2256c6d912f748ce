"""hf: models of Hugging Face's transformers with random weights (nothing is downloaded).

Their names are those on PyTorch's dashboard (benchmarks/dynamo/huggingface.py) where it has them,
and so are their sequence lengths, where a call on two cores then takes at most about a second. Else
the length is shorter, or the model is the smallest that was published of the same architecture;
docs/workloads.md says which. Without labels, unlike there: a call is a forward pass. Without a
cache and without an attention mask, as there. The last four have a cache, as a server does.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import WorkloadError, library, workload

if TYPE_CHECKING:
    from . import Built

LIBRARY = "transformers"
# Samples of the waveform, frames of the log-mel spectrogram (30 s).
SAMPLES, FRAMES, MEL_BINS = 10_000, 3000, 80
# Tokens for a user's model.
LENGTH = 128
# Tokens in the cache of a decoder: at most, and before the step that is measured.
LONGEST, SEEN = 256, 128


class Model(NamedTuple):
    """A model: its tokens, and where its configuration differs from the class's own.

    ``length``: of the sequence of tokens; 0 if the model takes none. ``checkpoint``: one on Hugging
    Face's hub that has this configuration, without the owner. ``kind``: its class, where that has
    another name than the workload.
    """

    length: int
    config: Mapping[str, Any] = {}
    checkpoint: str = ""
    kind: str = ""


_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1}
_BART_BASE = {
    "d_model": 768,
    **{f"{part}_layers": 6 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 12 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 3072 for part in ("encoder", "decoder")},
}
_SMOLLM2_135M = {
    **{"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536},
    **{"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3},
    **{"rope_theta": 100_000.0, "tie_word_embeddings": True},
}
MODELS = {
    "BertForMaskedLM": Model(512, checkpoint="bert-base-uncased"),
    "AlbertForMaskedLM": Model(
        512,
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
        checkpoint="albert-base-v2",
    ),
    "DistilBertForMaskedLM": Model(128, checkpoint="distilbert-base-uncased"),
    "RobertaForCausalLM": Model(512, _ROBERTA),
    "ElectraForCausalLM": Model(512),
    "DebertaV2ForMaskedLM": Model(
        512,
        {
            **{"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6},
            **{"intermediate_size": 1536, "relative_attention": True, "position_buckets": 256},
            **{"norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"]},
            **{"position_biased_input": False},
        },
        checkpoint="deberta-v3-xsmall",
    ),
    "MobileBertForMaskedLM": Model(128),
    "LayoutLMForMaskedLM": Model(512),
    "CamemBert": Model(
        512,
        {**_ROBERTA, "vocab_size": 32005},
        checkpoint="camembert-base",
        kind="CamembertForMaskedLM",
    ),
    "AllenaiLongformerBase": Model(
        512,
        {**_ROBERTA, "vocab_size": 50265, "max_position_embeddings": 4098},
        checkpoint="longformer-base-4096",
        kind="LongformerForMaskedLM",
    ),
    "GoogleFnet": Model(512, checkpoint="fnet-base", kind="FNetForMaskedLM"),
    "YituTechConvBert": Model(512, kind="ConvBertForMaskedLM"),
    "XLNetLMHeadModel": Model(
        256,
        {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072},
        checkpoint="xlnet-base-cased",
    ),
    "GPT2LMHeadModel": Model(256, checkpoint="gpt2"),
    "DistillGPT2": Model(512, {"n_layer": 6}, checkpoint="distilgpt2", kind="GPT2LMHeadModel"),
    "OPTForCausalLM": Model(256, checkpoint="opt-125m"),
    "GPTNeoForCausalLM": Model(
        128,
        {
            **{"hidden_size": 768, "num_layers": 12, "num_heads": 12},
            "attention_types": [[["global", "local"], 6]],
        },
    ),
    "LlamaForCausalLM": Model(SEEN, _SMOLLM2_135M, checkpoint="SmolLM2-135M"),
    "Qwen3ForCausalLM": Model(
        64,
        {
            **{"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28},
            **{"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
            **{"rope_theta": 1_000_000.0, "tie_word_embeddings": True},
        },
        checkpoint="Qwen3-0.6B",
    ),
    "Gemma3ForCausalLM": Model(
        128,
        {
            **{"vocab_size": 262144, "hidden_size": 640, "intermediate_size": 2048},
            **{"num_hidden_layers": 18, "num_attention_heads": 4, "num_key_value_heads": 1},
            "sliding_window": 512,
        },
        checkpoint="gemma-3-270m",
    ),
    "TrOCRForCausalLM": Model(256),
    "XGLMForCausalLM": Model(64),
    "T5ForConditionalGeneration": Model(512, checkpoint="t5-small"),
    "MT5ForConditionalGeneration": Model(128),
    "BartForConditionalGeneration": Model(256, _BART_BASE, checkpoint="bart-base"),
    "MBartForConditionalGeneration": Model(128),
    "PegasusForConditionalGeneration": Model(128),
    "BlenderbotSmallForConditionalGeneration": Model(128),
    "M2M100ForConditionalGeneration": Model(128),
    "WhisperForConditionalGeneration": Model(32, checkpoint="whisper-tiny"),
    "Wav2Vec2ForCTC": Model(0, checkpoint="wav2vec2-base-960h"),
    "CLIPModel": Model(77, checkpoint="clip-vit-base-patch32"),
    "SiglipModel": Model(64, checkpoint="siglip-base-patch16-224"),
    "MixtralForCausalLM": Model(
        128,
        {"hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 2},
    ),
    "MambaForCausalLM": Model(16, {"num_hidden_layers": 24}, checkpoint="mamba-130m-hf"),
}
CHECKPOINTS = {one.checkpoint: name for name, one in MODELS.items() if one.checkpoint}


def made(name: str) -> Any:
    """The model of that name. Raises WorkloadError if there is no transformers."""
    kind = getattr(library(LIBRARY), MODELS[name].kind or name)
    return _of_config(kind, kind.config_class(**MODELS[name].config))


def _of_config(kind: Any, config: Any) -> Any:
    """A model of that class in float32, without a cache. No pretrained weights are downloaded.

    The configurations of its parts (text, vision, backbone) have switches and a dtype of their own.
    """
    of_parts = library(LIBRARY).PretrainedConfig
    parts = [config]
    for part in parts:  # grows
        parts += [value for value in vars(part).values() if isinstance(value, of_parts)]
        for switch in ("use_cache", "use_pretrained_backbone"):
            if getattr(part, switch, False):
                setattr(part, switch, False)
    return kind(config).float()


def build(name: str, batch_size: int) -> Built:
    """The model of that name, and inputs (`inputs_of`)."""
    model = made(name)
    return model, inputs_of(model, MODELS[name].length, batch_size)


def of_folder(folder: str, batch_size: int | None) -> Built:
    """The model of a configuration that a user saved (``config.json``), with random weights.

    ``batch_size``: of the inputs (`inputs_of`); None for no inputs. Raises WorkloadError if it is
    not of a model of this transformers.
    """
    transformers = library(LIBRARY)
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        # Behind it transformers lists all models that it has.
        reason = str(error).splitlines()[0].partition(", or contain one of")[0]
        if "trust_remote_code" in str(error):
            reason += "; make the model in a factory of your own: try FILE.py:make"
        raise WorkloadError(f"{folder}: {reason}") from None
    if not config.architectures:
        raise WorkloadError(
            f'{folder}: config.json has no "architectures"; add the class, such as '
            '["LlamaForCausalLM"]'
        )
    named = config.architectures[0]
    kind = getattr(transformers, named, None)
    if kind is None:
        raise WorkloadError(
            f"{folder}: its architecture is {named}, which transformers "
            f"{transformers.__version__} does not have"
        )
    model = _of_config(kind, config)
    if batch_size is None:
        return model, {}
    longest = getattr(config.get_text_config(), "max_position_embeddings", None) or LENGTH
    # -1: there is no limit.
    return model, inputs_of(model, min(LENGTH, longest) if longest > 0 else LENGTH, batch_size)


def inputs_of(model: Any, length: int, batch_size: int) -> dict[str, Any]:
    """Random inputs for what ``forward`` takes, by name.

    ``input_ids`` and ``decoder_input_ids``: tokens (batch_size, length). ``pixel_values``: images
    (batch_size, channels, height, width) of the configuration's size. ``input_features``: log-mel
    frames (batch_size, bins, 3000). ``input_values``: samples (batch_size, 10000).

    A language model that reads images or sound in the place of certain tokens gets text alone:
    random tokens have no such places.
    """
    import torch

    vision = getattr(model.config, "vision_config", model.config)
    bins = getattr(model.config, "num_mel_bins", MEL_BINS)
    floats = {"input_values": (SAMPLES,), "input_features": (bins, FRAMES)}
    if hasattr(vision, "image_size"):
        size = vision.image_size
        sides = size if isinstance(size, (list, tuple)) else (size, size)
        floats["pixel_values"] = (getattr(vision, "num_channels", 3), *sides)
    inputs: dict[str, Any] = {}
    text_alone = any(
        getattr(model.config, f"{kind}_token_{name}", None) is not None
        for kind in ("image", "audio")
        for name in ("id", "index")
    )
    for argument, parameter in inspect.signature(model.forward).parameters.items():
        if argument in floats:
            if text_alone and parameter.default is None:
                continue
            inputs[argument] = torch.randn(batch_size, *floats[argument])
        elif argument in ("input_ids", "decoder_input_ids"):
            vocabulary = model.config.get_text_config().vocab_size
            inputs[argument] = torch.randint(0, vocabulary, (batch_size, length))
    return inputs


def with_cache(static: bool, tokens: int, batch_size: int) -> Built:
    """The Llama with a cache: a prompt of `SEEN` ``tokens``, or one token after them.

    A static cache has room for `LONGEST` tokens; a dynamic one grows. Each call begins with the
    same cache, (batch_size, heads, tokens, width) for keys and for values of each layer. Returns
    the logits of the last token, (batch_size, 1, 49152).
    """
    import torch
    from torch import nn

    model = made("LlamaForCausalLM")
    config = model.config
    transformers = library(LIBRARY)
    before = 0 if tokens > 1 else SEEN

    class WithCache(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            shape = (batch_size, config.num_key_value_heads, LONGEST if static else before)
            for layer in range(config.num_hidden_layers):
                for part in ("keys", "values"):
                    held = torch.randn(*shape, config.head_dim)
                    self.register_buffer(f"{part}{layer}", held)

        def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            if static:
                cache = transformers.StaticCache(config=config, max_cache_len=LONGEST)
            else:
                cache = transformers.DynamicCache(config=config)
            for number, layer in enumerate(cache.layers):
                layer.keys = getattr(self, f"keys{number}")
                layer.values = getattr(self, f"values{number}")
                layer.dtype, layer.device = layer.keys.dtype, layer.keys.device
                layer.is_initialized = True
            return self.model(
                input_ids=tokens,
                past_key_values=cache,
                cache_position=positions,
                use_cache=True,
                logits_to_keep=1,
            ).logits

    given = torch.randint(0, config.vocab_size, (batch_size, tokens))
    return WithCache(), (given, torch.arange(before, before + tokens))


for _name in MODELS:
    workload(_name, family="hf", imports=(LIBRARY,))(
        lambda batch_size, name=_name: build(name, batch_size)
    )
for _call, _tokens in (("prefill", SEEN), ("decode", 1)):
    for _kind in ("static", "dynamic"):
        workload(f"llama_{_call}_{_kind}_cache", family="hf", imports=(LIBRARY,))(
            lambda batch_size, static=_kind == "static", tokens=_tokens: with_cache(
                static, tokens, batch_size
            )
        )
