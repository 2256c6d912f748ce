"""``python -m evidence.expected_runner``: counts the bytes of `expected_functions` without a GPU.

Prints a line of JSON for each value: test, number, expected, counted, fault. The functions are
called on the CPU; their graphs are placed on the target and counted, as
`torchcompile_suite.launch.generate` does.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from torchcompile_suite import targets
from torchcompile_suite.launch import caches, failures
from torchcompile_suite.launch.generate import absent
from torchcompile_suite.launch.messages import TARGET_VARIABLE


def run() -> None:
    """Count every value, and print it."""
    import torch

    from . import expected_functions

    release = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))
    for value in expected_functions.VALUES:
        expected = expected_functions.expected(value, release)
        if expected is None:
            continue
        line: dict[str, Any] = {
            "test": value.test,
            "number": value.number,
            "expected": expected,
        }
        try:
            line["counted"] = _count(value)
        except Exception as error:
            line["fault"] = failures.one_line(f"{type(error).__name__}: {error}")
        print(json.dumps(line), file=sys.__stdout__, flush=True)


def _count(value: Any) -> int:
    """Numbers of 4 bytes that all kernels of the function read and write."""
    import torch
    import torch._inductor.config

    from torchcompile_suite.launch.generate import hooks
    from torchcompile_suite.launch.generate.generate import place
    from torchcompile_suite.launch.generate.recorder import Recorder
    from torchcompile_suite.launch.inspect import inductor

    recorder = Recorder()

    def backend(graph: Any, inputs: Any) -> Any:
        with inductor.generating_anew(), hooks.watching(recorder):
            hooks.compile_graph(*place(graph, inputs), {})
        return graph.forward

    torch._dynamo.reset()
    with torch._inductor.config.patch(dict(value.settings)):
        context = contextlib.nullcontext() if value.train else torch.no_grad()
        with context:
            torch.compile(value.function, backend=backend)(*map(_input, value.inputs))
    forward, backward = recorder.result(False, {})
    return (forward.bytes_after + (backward.bytes_after if backward else 0)) // 4


def _input(text: str) -> Any:
    """A tensor of such a shape: ``10x10``, ``10g`` with gradients, ``10i`` of integers."""
    import torch

    kind = text[-1] if text[-1] in "gi" else ""
    sizes = [int(size) for size in text.rstrip("gi").split("x")]
    if kind == "i":
        return torch.randint(0, 10, sizes, dtype=torch.int32)
    return torch.randn(sizes, requires_grad=kind == "g")


def main() -> None:
    """Start again with the device's answers, then count."""
    target = targets.get(os.environ[TARGET_VARIABLE])
    if not absent.preloaded():
        absent.start_again(target, ["-m", "evidence.expected_runner"])
    with tempfile.TemporaryDirectory(prefix="expected-") as folder:
        caches.use(Path(folder))
        absent.give(target)
        run()


if __name__ == "__main__":
    main()
