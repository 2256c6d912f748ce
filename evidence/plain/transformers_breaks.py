"""Graphs and graph breaks of small models of transformers, with random weights.

Run it with a release's Python; the argument is a folder that has transformers 4.57.3.
"""

import sys

sys.path.insert(0, sys.argv[1])

import torch
import transformers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    CLIPConfig,
    CLIPModel,
    GPT2Config,
    GPT2LMHeadModel,
)

ids = torch.randint(0, 99, (1, 16))
small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
text, image = {**small, "vocab_size": 99}, {**small, "image_size": 32, "patch_size": 16}
pixels = torch.randn(1, 3, 32, 32)
models = [
    (BertForMaskedLM(BertConfig(**text)), {"input_ids": ids}),
    (
        GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=2)),
        {"input_ids": ids},
    ),
    (
        CLIPModel(CLIPConfig(text_config=text, vision_config=image)),
        {"input_ids": ids, "pixel_values": pixels},
    ),
]
print(f"torch {torch.__version__}, transformers {transformers.__version__}")
for model, inputs in models:
    torch._dynamo.reset()
    with torch.no_grad():
        found = torch._dynamo.explain(model.eval())(**inputs)
    print(f"{type(model).__name__}: {found.graph_count} graphs")
    for reason in dict.fromkeys(str(one.reason)[:120] for one in found.break_reasons):
        print(f"    {reason}")
