"""Makes what a service loads when it starts, with each release's own functions, 2.4 to 2.15.

Each function names the function that loads what was made: `launch.starts.service.LOADERS`. Sources:
``torch/_inductor/__init__.py``, ``torch/compiler/__init__.py`` and ``torch/compiler/precompile.py``
of the releases.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor

from ... import failures
from ...subject import apply


def need_carried_caches() -> None:
    """Raise `failures.Unsupported` if the release cannot carry its caches (since 2.7)."""
    if not hasattr(torch.compiler, "save_cache_artifacts"):
        raise failures.Unsupported(
            f"torch {torch.__version__} has no torch.compiler.save_cache_artifacts"
        )


def carried_caches(folder: Path) -> str:
    """Save the caches of this process, which has compiled."""
    saved = torch.compiler.save_cache_artifacts()
    if saved is None:
        raise failures.Unsupported("torch has nothing to carry: what was compiled is not cached")
    Path(folder, "cache.bin").write_bytes(saved[0])
    return "torch.compiler.load_cache_artifacts"


def package(module: torch.nn.Module, inputs: Any, folder: Path) -> str:
    """Compile ahead of time with AOTInductor. The package contains the weights.

    2.4 has no package, but the library that a package contains. In 2.5 the arguments of the
    function are the example inputs; later releases know them from the exported program.
    """
    arguments, options = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with torch.no_grad():
        if not hasattr(torch._inductor, "aoti_compile_and_package"):
            from torch._export import aot_compile

            library = {"aot_inductor.output_path": str(folder / "model.so")}
            aot_compile(module, arguments, options or None, options=library)
            return "torch._export.aot_load"
        exported = torch.export.export(module, arguments, options)
        compile_and_package = torch._inductor.aoti_compile_and_package
        knows_inputs = (
            "_deprecated_unused_args" in inspect.signature(compile_and_package).parameters
        )
        given = () if knows_inputs else (arguments, options)
        compile_and_package(exported, *given, package_path=str(folder / "model.pt2"))
    return "torch._inductor.aoti_load_package"


def precompiled(module: torch.nn.Module, inputs: Any, folder: Path) -> str:
    """Compile ahead of time with `torch.compiler.precompile`, or with what came before it.

    From 2.9 until there was `torch.compiler.precompile`, a function of torch.compile has
    ``aot_compile``. In 2.9 it is behind a setting.
    """
    precompile = getattr(torch.compiler, "precompile", None)
    if hasattr(precompile, "capture"):
        files = {"artifact_path": folder / "model.py", "cache_path": folder / "model.cache"}
        with precompile.capture(apply, **files) as capture:  # type: ignore[union-attr]
            capture(module, inputs)
        return "torch.compiler.precompile.load"
    config = torch._dynamo.config
    if not (
        hasattr(torch.compiler, "load_compiled_function") and hasattr(config, "enable_aot_compile")
    ):
        raise failures.Unsupported(
            f"torch {torch.__version__} has neither torch.compiler.precompile nor "
            "torch.compile(...).aot_compile"
        )
    example = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with config.patch(enable_aot_compile=True):
        compiled = torch.compile(module.forward, fullgraph=True).aot_compile(example)
    compiled.save_compiled_function(str(folder / "model.bin"))
    return "torch.compiler.load_compiled_function"
