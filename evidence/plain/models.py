"""The models of plain.py: as a user would write them, without the suite.

`make` returns the module, a function that makes one call, and whether the call is a training step.
tests/test_evidence.py checks that these are the suite's workloads.
"""

import torch
from torch import nn


class PointwiseChain(nn.Module):
    def forward(self, x):
        gate = torch.sigmoid(x * 1.5 + 0.5)
        return torch.relu(x * gate - 0.1).square().neg().exp()


class SoftmaxMatmul(nn.Module):
    def forward(self, x, y):
        return torch.softmax(x @ y, dim=-1)


class Information(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Conv2d(64, 64, 1)

    def forward(self, grid):
        p = torch.softmax(self.project(grid), dim=1)
        return -(p * torch.log(p + 1e-10)).sum(dim=1)


class Block(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(256), nn.LayerNorm(256)
        self.qkv = nn.Linear(256, 768)
        self.proj = nn.Linear(256, 256)
        self.mlp = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
        self.register_buffer("keys", torch.randn(batch, 4, 256, 64))
        self.register_buffer("values", torch.randn(batch, 4, 256, 64))

    def forward(self, x, positions):
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, 4, 64)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        self.keys.index_copy_(2, positions, k)
        self.values.index_copy_(2, positions, v)
        seen = torch.arange(256)[None, :] <= positions[:, None]
        attended = nn.functional.scaled_dot_product_attention(
            q, self.keys, self.values, attn_mask=seen
        )
        x = x + self.proj(attended.transpose(1, 2).reshape(batch, length, 256))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.tokens = nn.Embedding(4096, 256)
        self.position = nn.Embedding(256, 256)
        self.blocks = nn.ModuleList(Block(batch) for _ in range(4))
        self.norm = nn.LayerNorm(256)
        self.head = nn.Linear(256, 4096, bias=False)

    def forward(self, tokens, positions):
        x = self.tokens(tokens) + self.position(positions)
        for block in self.blocks:
            x = block(x, positions)
        return self.head(self.norm(x))


def build(name, batch):
    """The module and its inputs."""
    if name == "pointwise_chain":
        return PointwiseChain(), (torch.randn(batch, 1024, 1024),)
    if name == "softmax_matmul":
        return SoftmaxMatmul(), (torch.randn(batch, 100, 100), torch.randn(batch, 100, 100))
    if name == "gpt_decode":
        return Decoder(batch), (torch.randint(0, 4096, (batch, 1)), torch.tensor([128]))
    if name == "relevance_information":
        return Information(), (torch.randn(batch, 64, 32, 32),)
    if name == "DistilBertForMaskedLM":
        import transformers

        model = transformers.DistilBertForMaskedLM(transformers.DistilBertConfig())
        return model, (torch.randint(0, model.config.vocab_size, (batch, 128)),)
    import timm

    model = timm.create_model(name)
    return model, (torch.randn(batch, *model.pretrained_cfg["input_size"]),)


def make(name, batch):
    """The module, one call with it or its compiled form, and whether that is a training step."""
    name, _, training = name.partition(":")
    module, inputs = build(name, batch)
    module.train(bool(training))
    if not training:
        return module, lambda forward: forward(*inputs), False
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-5)

    def step(forward):
        optimizer.zero_grad()
        loss = forward(*inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return module, step, True
