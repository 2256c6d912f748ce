"""Runs where a commit was laid over a release: does its torch import, compile, compute right?

Exit status 0, or 1 and on standard output one line that says what does not. Torch alone: nothing of
the suite is needed to say it.
"""

from __future__ import annotations

import sys

# Beyond what float32 loses in two hundred additions, far below what a wrong kernel does.
TOLERANCE = 1e-4


def fault() -> str:
    """What is wrong, in one line, or the empty string."""
    try:
        import torch

        torch.manual_seed(0)
        x, weight = torch.randn(16, 192), torch.randn(192, 24)

        def function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.gelu(x @ weight).softmax(-1)

        expected = function(x.double(), weight.double())
        with torch.inference_mode():
            found = torch.compile(function, fullgraph=True)(x, weight).double()
        error = float((found - expected).norm() / expected.norm())
    except Exception as failure:
        lines = str(failure).strip().splitlines() or [""]
        return f"{type(failure).__name__}: {lines[0]}"
    # Not "error > TOLERANCE": that lets NaN pass.
    return "" if error <= TOLERANCE else f"a compiled function is off by {error:.2g}"


if __name__ == "__main__":
    said = fault()
    if said:
        print(said)
    sys.exit(1 if said else 0)
