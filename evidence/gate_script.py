"""Runs in an environment with an overlay: does its torch import, compile, and compute correctly?

Exit status 0, or 1 and one line with the fault on standard output. Imports torch alone: nothing of
the suite is needed.
"""

from __future__ import annotations

import sys

# Above the rounding of float32 in two hundred additions, far below the error of a wrong kernel.
TOLERANCE = 1e-4


def fault() -> str:
    """The fault in one line; empty if there is none."""
    try:
        import torch

        torch.manual_seed(0)
        x, weight = torch.randn(16, 192), torch.randn(192, 24)

        def function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.gelu(x @ weight).softmax(-1)

        expected = function(x.double(), weight.double())
        with torch.inference_mode():
            compiled = torch.compile(function, fullgraph=True)(x, weight).double()
        error = float((compiled - expected).norm() / expected.norm())
    except Exception as failure:
        lines = str(failure).strip().splitlines() or [""]
        return f"{type(failure).__name__}: {lines[0]}"
    # Not "error > TOLERANCE": NaN would pass.
    return "" if error <= TOLERANCE else f"a compiled function has a relative error of {error:.2g}"


if __name__ == "__main__":
    reason = fault()
    if reason:
        print(reason)
    sys.exit(1 if reason else 0)
