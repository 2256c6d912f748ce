"""Graph breaks as PyTorch's own runs count them: python ci_breaks.py TABLE MODEL...

TABLE is huggingface, torchbench or timm, as in PyTorch's benchmarks/dynamo/ci_expected_accuracy.
Prints a line of JSON for each model. The models and inputs are those of the runner there, for an
accuracy run of inference on the CPU; those of transformers are smaller. The suite is not
used. Run it in the environment of a release, with PYTHONPATH for what lies apart.
"""

import contextlib
import copy
import inspect
import json
import signal
import sys

import torch
import torch._dynamo.output_graph
import torch._dynamo.utils
from torch import nn

# Seconds of processor time for a model; what takes longer is not counted.
LIMIT_S = 60
# In 2.4 to 2.6 the runner compiles the loop of two calls, since 2.7 the call (pytorch#145590).
LOOP_COMPILED = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7)
# Sizes of all configurations of transformers that have them. The models of OWN_WIDTHS are small, or
# their sizes depend on each other.
WIDTHS = {
    **{"hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4, "d_model": 256},
    **{f"{part}_ffn_dim": 1024 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 4 for part in ("encoder", "decoder")},
}
OWN_WIDTHS = ("MobileBert", "T5", "MT5", "Reformer", "DistilBert", "Electra")
# All models but those that break have fewer layers: the layers of a model are alike.
LAYERS = dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers"), 4)
OWN_LAYERS = ("GPT2", "Longformer", "LayoutLM", "BigBird", "Reformer")
ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1}
LONGFORMER = {**ROBERTA, "vocab_size": 50265, "max_position_embeddings": 4098}
PAD = {"pad_token_id": 0}
LONG = ("GPT2", "Bart", "T5", "PLBart", "MBart", "AllenaiLongformerBase")
MIDDLE = (
    *("Albert", "Deberta", "Layout", "Electra", "XLNet", "MegatronBert", "Bert", "Roberta"),
    *("DistillGPT2", "GoogleFnet", "YituTechConvBert"),
)

# Where the class is not called as the model, or its configuration is not the class's own.
HUGGINGFACE = {
    "AllenaiLongformerBase": ("LongformerForMaskedLM", LONGFORMER),
    "CamemBert": ("CamembertForMaskedLM", {}),
    "DistillGPT2": ("GPT2LMHeadModel", {"n_layer": 6}),
    "GPT2ForSequenceClassification": ("GPT2ForSequenceClassification", PAD),
    "GoogleFnet": ("FNetForMaskedLM", {}),
    "RobertaForCausalLM": ("RobertaForCausalLM", PAD),
    "RobertaForQuestionAnswering": ("RobertaForQuestionAnswering", PAD),
    "T5Small": ("T5ForConditionalGeneration", {}),
    "YituTechConvBert": ("ConvBertForMaskedLM", {}),
}
# With the length on CPUs; 0 for frames of sound.
TORCHBENCH_HF = {
    "hf_Albert": ("AlbertForMaskedLM", {}, 512),
    "hf_Bart": ("BartForConditionalGeneration", {}, 512),
    "hf_Bert": ("BertForMaskedLM", {}, 512),
    "hf_Bert_large": ("BertForMaskedLM", {"num_hidden_layers": 24}, 512),
    "hf_BigBird": ("BigBirdForMaskedLM", {"attention_type": "block_sparse"}, 4096 // 5),
    "hf_DistilBert": ("DistilBertForMaskedLM", {}, 512),
    "hf_GPT2": ("GPT2LMHeadModel", {}, 1024 // 4),
    "hf_Longformer": ("LongformerForMaskedLM", LONGFORMER, 4096 // 8),
    "hf_Reformer": ("ReformerForMaskedLM", {"num_buckets": 128}, 4096 // 2),
    "hf_Roberta_base": ("XLMRobertaForMaskedLM", ROBERTA, 512),
    "hf_T5": ("T5ForConditionalGeneration", {}, 2048 // 4),
    "hf_T5_base": ("T5ForConditionalGeneration", {"num_layers": 6}, 2048),
    "hf_distil_whisper": ("WhisperForAudioClassification", {}, 0),
    "moondream": ("PhiForCausalLM", {}, 512),
}
# One sequence by default in TorchBench; four in an accuracy run are too much for two cores.
ONE = ("hf_T5_base", "hf_distil_whisper", "moondream")
TORCHBENCH_TIMM = {
    "timm_efficientnet": "efficientnet_b0",
    "timm_nfnet": "dm_nfnet_f0",
    "timm_regnet": "regnety_120",
    "timm_resnest": "resnest14d",
    "timm_vision_transformer": "vit_small_patch16_224",
    "timm_vovnet": "vovnet39a",
}
TORCHBENCH_VISION = (
    *("alexnet", "densenet121", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "resnet152"),
    *("resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x1_0", "squeezenet1_1", "vgg16"),
    *("mobilenet_v2_quantized_qat", "resnet50_quantized_qat", "vision_maskrcnn"),
)


class Projected(nn.Module):
    """An LSTM and a linear layer."""

    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, 768, batch_first=True)
        self.linear = nn.Linear(768, 256, bias=False)

    def forward(self, x):
        self.lstm.flatten_parameters()
        return self.linear(self.lstm(x)[0])


class TtsAngular(nn.Module):
    """A speaker's voice as a vector."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Projected(40), Projected(256), Projected(256))

    def forward(self, x):
        return nn.functional.normalize(self.layers(x)[:, -1], p=2, dim=1)


class UnbackedTolistSum(nn.Module):
    """Numbers of a tensor as an index."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1))

    def forward(self, factor, places, values):
        listed = places.tolist()
        for place in listed:
            torch._check_is_size(place)
        total = 0
        for place in listed:
            torch._check(place < values.size(0))
            total += values[place].item()
        return factor * self.weight * total


def small(name):
    """A module of a few lines and its inputs."""
    return {
        "lennard_jones": lambda: (
            nn.Sequential(
                *(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh()),
                *(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)),
            ),
            (torch.rand(4, 1),),
        ),
        "microbench_unbacked_tolist_sum": lambda: (
            UnbackedTolistSum(),
            (torch.randn(4), torch.arange(1000).int(), torch.ones(1000).int()),
        ),
        "tts_angular": lambda: (TtsAngular(), (torch.rand(4, 50, 40),)),
    }.get(name)


def of_transformers(kind, config):
    """A small model of transformers without a cache."""
    import transformers

    kind = getattr(transformers, kind)
    known = kind.config_class()
    sizes = {} if kind.__name__.startswith(OWN_WIDTHS) else WIDTHS
    sizes = {**sizes, **({} if kind.__name__.startswith(OWN_LAYERS) else LAYERS)}
    sizes = {name: size for name, size in sizes.items() if hasattr(known, name)}
    config = kind.config_class(**{**sizes, **config})
    model = kind(config)
    for name in dir(config):
        if "drop" in name and isinstance(getattr(config, name), float):
            setattr(config, name, 1e-30)
    # Some models have a copy of the configuration.
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model


def length(name):
    """Tokens of a model of the table huggingface."""
    if name.startswith("OPT"):
        return 2048
    if name == "TrOCRForCausalLM":
        return 256
    return 1024 if name.startswith(LONG) else 512 if name.startswith(MIDDLE) else 128


def huggingface(name):
    """A model of that table and its inputs: one sequence, with labels."""
    kind, config = HUGGINGFACE.get(name, (name, {}))
    model, tokens = of_transformers(kind, config), length(name)
    vocabulary = model.config.vocab_size
    ids = torch.randint(0, 1 if name.startswith("Roberta") else vocabulary, (1, tokens))
    if "Bart" in name:
        ids[:, -1] = model.config.eos_token_id
    inputs = {"input_ids": ids}
    if name.startswith(("T5", "M2M100", "MT5")):
        inputs["decoder_input_ids"] = ids
    if name.endswith("QuestionAnswering"):
        for end in ("start_positions", "end_positions"):
            inputs[end] = torch.randint(0, tokens, (1,))
    elif name.endswith("SequenceClassification"):
        inputs["labels"] = torch.randint(0, model.config.num_labels - 1, (1,))
    else:
        inputs["labels"] = torch.randint(0, vocabulary - 1, (1, tokens))
    return model, inputs


def torchbench(name):
    """A model of that table and its inputs: four of them, without labels."""
    if make := small(name):
        return make()
    if name in TORCHBENCH_HF:
        kind, config, tokens = TORCHBENCH_HF[name]
        model = of_transformers(kind, config)
        batch = 1 if name in ONE else 4
        if not tokens:
            return model, (torch.randn(batch, model.config.num_mel_bins, 3000),)
        ids = torch.randint(0, model.config.vocab_size, (batch, tokens))
        seq2seq = "decoder_input_ids" in inspect.signature(model.forward).parameters
        return model, {"input_ids": ids, **({"decoder_input_ids": ids} if seq2seq else {})}
    if name in TORCHBENCH_TIMM:
        return timm(TORCHBENCH_TIMM[name], batch=4)
    if name not in TORCHBENCH_VISION:
        raise LookupError("from another library, or of TorchBench's own files")
    import torchvision.models as vision

    if name == "vision_maskrcnn":
        model = vision.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)
        return model, ([torch.rand(3, 426, 640)],)
    model, inputs = getattr(vision, name.partition("_quantized")[0])(), torch.randn(4, 3, 224, 224)
    if name.endswith("_quantized_qat"):
        from torch.ao.quantization import get_default_qat_qconfig, quantize_fx

        chosen = {"": get_default_qat_qconfig("fbgemm")}
        model = quantize_fx.prepare_qat_fx(model.train(), chosen, (inputs,))
        model = quantize_fx.convert_fx(model)
    return model, (inputs,)


def timm(name, batch=1):
    """A model of timm and an image, of the size for tests if it has one."""
    import timm

    model = timm.create_model(name)
    known = model.pretrained_cfg
    size = known.get("test_input_size") or known["input_size"]
    return model, (torch.randn(batch, *size),)


TABLES = {"huggingface": huggingface, "torchbench": torchbench, "timm": timm}


def build(table, name):
    """A model of a table of PyTorch's, for inference, and its inputs: by position or by name."""
    torch.manual_seed(1337)
    module, inputs = TABLES[table](name)
    return module.eval(), inputs


class Runner:
    """What PyTorch's runner compiles: the same frames."""

    def __init__(self):
        self.autocast, self.autocast_arg = contextlib.nullcontext, {}

    def forward_pass(self, module, inputs, collect_outputs=True):  # noqa: ARG002
        with self.autocast(**self.autocast_arg):
            if isinstance(inputs, dict):
                return module(**inputs)
            return module(*inputs)

    def run_n_iterations(self, module, inputs, call):
        for _ in range(1):
            call(module, inputs, collect_outputs=False)
        return call(module, inputs, collect_outputs=True)


def count(module, inputs):
    """What the runner counts: graph breaks and graphs; and each reason with its place once."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.output_graph.graph_break_reasons.clear()
    runner, module = Runner(), copy.deepcopy(module)
    with torch.no_grad():
        if LOOP_COMPILED:
            compiled = torch.compile(runner.run_n_iterations, backend="eager")
            compiled(module, inputs, runner.forward_pass)
        else:
            compiled = torch.compile(runner.forward_pass, backend="eager")
            runner.run_n_iterations(module, inputs, compiled)
    counters = torch._dynamo.utils.counters
    reasons = map(reason, torch._dynamo.output_graph.graph_break_reasons)
    return {
        "counted": sum(counters["graph_break"].values()),
        "graphs": counters["stats"]["unique_graphs"],
        "reasons": list(dict.fromkeys(reasons)),
    }


def reason(graph_break):
    """Its place, as a file of a package, and the first line of its text."""
    own = torch.__file__.removesuffix("__init__.py")
    frames = [each for each in graph_break.user_stack or () if not each.filename.startswith(own)]
    place = ""
    if frames:
        file = frames[-1].filename
        homes = sorted((home for home in sys.path if home and file.startswith(home)), key=len)
        place = f"{file[len(homes[-1]) + 1 :] if homes else file}:{frames[-1].lineno}: "
    return place + str(graph_break.reason).strip().splitlines()[0][:120]


def stop(*_):
    raise TimeoutError(f"more than {LIMIT_S} s")


def main(*counts):
    """Count each model, in each way."""
    table, *names = sys.argv[1:]
    signal.signal(signal.SIGPROF, stop)
    for name in names:
        line = {"table": table, "model": name}
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            module, inputs = build(table, name)
            for each in counts:
                line |= each(module, inputs)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            line["fault"] = " ".join(text.split())[:200]
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(count)
