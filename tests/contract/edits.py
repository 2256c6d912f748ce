"""Edits of three small projects: those that a contract must catch, and those that it must not.

Each edit replaces text of files: (file, old, new). `CAUGHT` also has the code of the line that a
failure must name, and a part of what it must say.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROJECTS = Path(__file__).parent / "projects"
MODEL = "model.py"


class Edit(NamedTuple):
    """An edit of a project. ``line``: code that a failure names; ``says``: a part of it."""

    name: str
    project: str
    replaced: tuple[tuple[str, str, str], ...]
    line: str = ""
    says: str = ""


HIDDEN = "        hidden = self.first(x).relu()\n"
FEATURES = "        features = torch.nn.functional.gelu(self.conv(x))\n"
TOKENS = "            tokens = block(tokens)\n"

CAUGHT = [
    Edit(
        "a print",
        "encoder",
        ((MODEL, HIDDEN, HIDDEN + '        print("hidden")\n'),),
        'print("hidden")',
        "graph break",
    ),
    Edit(
        "an item",
        "encoder",
        (
            (
                "layers.py",
                "        return x * torch",
                "        top = x.max().item()\n        return x * top * torch",
            ),
        ),
        "top = x.max().item()",
        "graph break",
    ),
    Edit(
        "a changed shape policy",
        "decoder",
        (
            (
                MODEL,
                "    def forward(self, tokens):\n",
                "    def forward(self, tokens):\n"
                "        if tokens.size(1) % 3 == 0:\n            tokens = tokens + 1\n",
            ),
        ),
        "if tokens.size(1) % 3 == 0:",
        "recompile",
    ),
    Edit(
        "an attribute that counts up",
        "encoder",
        (
            (
                MODEL,
                HIDDEN,
                HIDDEN + "        self.calls += 1\n        hidden = hidden * self.calls\n",
            ),
        ),
        "self.calls += 1",
        "recompile",
    ),
    Edit(
        "a numpy call",
        "network",
        (
            (MODEL, "import torch\n", "import numpy as np\nimport torch\n"),
            (
                MODEL,
                FEATURES,
                FEATURES
                + "        features = features + float(np.random.default_rng(0).random())\n",
            ),
        ),
        "np.random.default_rng(0)",
        "graph break",
    ),
    Edit(
        "a custom operator",
        "network",
        (
            (
                MODEL,
                "def normalised",
                '@torch.library.custom_op("shop::twice", mutates_args=())\n'
                "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n\n\n"
                "@twice.register_fake\ndef _(x):\n    return torch.empty_like(x)\n\n\n"
                "def normalised",
            ),
            (MODEL, FEATURES, FEATURES + "        features = twice(features)\n"),
        ),
        "features = twice(features)",
        "operator shop::twice float32: 0 -> 1",
    ),
    Edit(
        "a hook",
        "encoder",
        (
            (
                MODEL,
                "        self.calls = 0\n",
                "        self.calls = 0\n        self.second.register_forward_hook(shift)\n",
            ),
            (
                MODEL,
                "class Encoder",
                "def shift(module, inputs, output):\n    return output + 3\n\n\nclass Encoder",
            ),
        ),
        "return output + 3",
        "operator add float32",
    ),
    Edit(
        "autocast inside",
        "network",
        (
            (
                MODEL,
                FEATURES,
                '        with torch.autocast("cpu", torch.bfloat16):\n    ' + FEATURES,
            ),
            (MODEL, "self.head(features)", "self.head(features.float())"),
        ),
        "features = torch.nn.functional.gelu(self.conv(x))",
        "bfloat16",
    ),
    Edit(
        "a dict that grows",
        "network",
        (
            (
                MODEL,
                FEATURES,
                "        self.seen[len(self.seen)] = x.size(0)\n"
                + FEATURES.replace("self.conv(x)", "self.conv(x) * len(self.seen)"),
            ),
        ),
        "self.seen[len(self.seen)]",
        "recompile",
    ),
    Edit(
        "a lambda in forward",
        "decoder",
        (
            (
                MODEL,
                TOKENS,
                "            self.act = lambda value: value * 0.5\n"
                "            tokens = self.act(block(tokens))\n",
            ),
        ),
        "lambda value: value * 0.5",
        "operator mul float32",
    ),
    Edit(
        "a dtype change",
        "decoder",
        (
            (
                MODEL,
                "        return x + torch.tanh(self.mix(self.norm(x)))",
                "        return x + torch.tanh(self.mix(self.norm(x)).double()).float()",
            ),
        ),
        "torch.tanh(self.mix(self.norm(x)).double())",
        "operator tanh float64: 0 -> 4",
    ),
    Edit(
        "a second mode",
        "decoder",
        (
            (MODEL, "    def forward(self, tokens):\n", "    def run(self, tokens):\n"),
            (
                MODEL,
                "def service",
                '_second = torch.compile(lambda value: value.cos(), mode="reduce-overhead")\n\n\n'
                "def service",
            ),
            (
                MODEL,
                "        return tokens\n",
                "        return tokens\n\n    def forward(self, tokens):\n"
                "        torch._dynamo.graph_break()\n"
                "        return self.run(tokens) + _second(tokens)\n",
            ),
        ),
        # The code compiles a part now, and only that is counted.
        "_second = torch.compile",
        "operator cos float32: 0 -> 2",
    ),
    Edit(
        "a print in a loop",
        "decoder",
        ((MODEL, TOKENS, TOKENS + '            print("block")\n'),),
        'print("block")',
        "left to eager",
    ),
    Edit(
        "a branch on a value",
        "encoder",
        (
            (
                MODEL,
                HIDDEN,
                HIDDEN + "        if hidden.sum() > 0:\n            hidden = hidden + 1\n",
            ),
        ),
        "if hidden.sum() > 0:",
        "graph break",
    ),
]

HARMLESS = [
    Edit("a comment", "encoder", ((MODEL, HIDDEN, "        # Rows.\n\n\n" + HIDDEN),)),
    Edit(
        "a renamed variable",
        "encoder",
        ((MODEL, HIDDEN, HIDDEN.replace("hidden", "h")), (MODEL, "second(hidden)", "second(h)")),
    ),
    Edit(
        "a renamed argument",
        "decoder",
        (
            (MODEL, "def forward(self, tokens)", "def forward(self, ids)"),
            (MODEL, "tokens = block(tokens)", "ids = block(ids)"),
            (MODEL, "return tokens", "return ids"),
        ),
    ),
    Edit(
        "a moved class",
        "encoder",
        (
            (MODEL, "from layers import Gate", "from gates import Gate"),
            ("gates.py", "", (PROJECTS / "encoder" / "layers.py").read_text()),
            ("layers.py", "class Gate", "class Unused"),
        ),
    ),
    Edit(
        "a function moved down",
        "network",
        (
            (
                MODEL,
                "def normalised(x):\n    return (x - x.mean((2, 3), keepdim=True)) / "
                "(x.std((2, 3), keepdim=True) + 1e-5)\n",
                "",
            ),
            (
                MODEL,
                "def make",
                "def normalised(x):\n    return (x - x.mean((2, 3), keepdim=True)) / "
                "(x.std((2, 3), keepdim=True) + 1e-5)\n\n\ndef make",
            ),
        ),
    ),
    Edit(
        "functions for modules",
        "encoder",
        ((MODEL, "self.first(x).relu()", "torch.nn.functional.relu(self.first(x))"),),
    ),
    Edit(
        "a helper taken out",
        "network",
        (
            (MODEL, "        pooled = x.mean((2, 3))\n", "        pooled = self.pool(x)\n"),
            (
                MODEL,
                "class Network",
                "    def pool(self, x):\n        return x.mean((2, 3))\n\n\nclass Network",
            ),
        ),
    ),
    Edit(
        "a Sequential",
        "decoder",
        (
            (MODEL, "nn.ModuleList([Block(), Block()])", "nn.Sequential(Block(), Block())"),
            (
                MODEL,
                "        for block in self.blocks:\n            tokens = block(tokens)\n"
                "        return tokens\n",
                "        return self.blocks(tokens)\n",
            ),
        ),
    ),
    Edit(
        "a type hint", "decoder", ((MODEL, "tokens):", "tokens: torch.Tensor) -> torch.Tensor:"),)
    ),
    Edit(
        "a docstring and an assertion",
        "network",
        (
            (
                MODEL,
                "        x = normalised(x)\n",
                '        """Features."""\n        assert x.dim() == 4\n        x = normalised(x)\n',
            ),
        ),
    ),
    Edit(
        "an unused module",
        "decoder",
        (
            (
                MODEL,
                "        self.blocks",
                "        self.unused = nn.Linear(3, 3)\n        self.blocks",
            ),
        ),
    ),
    Edit("a renamed class", "decoder", ((MODEL, "Block", "Layer"),)),
    Edit(
        "a renamed attribute",
        "network",
        ((MODEL, "self.conv", "self.stem"), (MODEL, "self.head", "self.classifier")),
    ),
]
