"""``python -m evidence.ci_breaks_runner TABLE MODEL...``: each model counted twice.

Prints the lines of `plain/ci_breaks.py`, which counts as PyTorch's runner does, with what the suite
counts of the same module and inputs.
"""

from __future__ import annotations

import copy
import importlib
from typing import Any

import torch

from torchcompile_suite.launch.inspect import dynamo
from torchcompile_suite.launch.subject import apply

# It is written without types, as a user's script is.
ci_breaks: Any = importlib.import_module("evidence.plain.ci_breaks")


def suites(module: torch.nn.Module, inputs: Any) -> dict[str, Any]:
    """The places of graph breaks, as a cold launch records them."""
    dynamo.reset()
    with torch.no_grad():
        apply(torch.compile(copy.deepcopy(module), backend="eager"), inputs)
    return {"places": [f"{one.where}: {one.reason}"[:120] for one in dynamo.graph_breaks()]}


if __name__ == "__main__":
    ci_breaks.main(ci_breaks.count, suites)
