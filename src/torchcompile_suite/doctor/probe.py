"""A script that describes the Python that runs it, as JSON on standard output.

It uses the standard library only, because the suite need not be installed in that Python.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import sysconfig
from importlib import metadata


def version(name: str) -> str:
    """The distribution's version; empty if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def import_error(module: str) -> str:
    """Why the module does not import, in one line; empty if it does."""
    try:
        importlib.import_module(module)
    except BaseException as fault:
        lines = str(fault).strip().splitlines()
        return f"{type(fault).__name__}: {lines[0] if lines else ''}"
    return ""


def main() -> None:
    """Print the description."""
    names = ("torch", "torchvision", "triton", "setuptools", "timm")
    versions = {name: version(name) for name in names}
    described = {
        "python": sys.version.split()[0],
        "versions": versions,
        "include": sysconfig.get_path("include"),
        "torch_error": import_error("torch"),
        **dict.fromkeys(("cuda_built", "cuda_error", "gpu"), ""),
        **dict.fromkeys(("torchvision_error", "triton_error"), ""),
        "cuda_available": False,
        "wants_torch": [],
        "threads": 0,
    }
    if not described["torch_error"]:
        import torch

        described["threads"] = torch.get_num_threads()
        described["cuda_built"] = torch.version.cuda or torch.version.hip or ""
        try:
            described["cuda_available"] = torch.cuda.is_available()
            if described["cuda_available"]:
                described["gpu"] = torch.cuda.get_device_name()
            elif described["cuda_built"]:
                torch.cuda.init()
        except BaseException as fault:
            described["cuda_error"] = (str(fault).strip().splitlines() or [""])[0]
        if version("torchvision"):
            described["torchvision_error"] = import_error("torchvision")
            described["wants_torch"] = [
                requirement
                for requirement in metadata.requires("torchvision") or ()
                if requirement.partition(";")[0].strip().startswith("torch")
            ]
        # Some builds of torch bring it under the name of another package.
        described["triton_error"] = import_error("triton")
        if not described["triton_error"]:
            versions["triton"] = str(getattr(sys.modules["triton"], "__version__", ""))
    print(json.dumps(described))


if __name__ == "__main__":
    # Imports may print to standard output: send that to standard error.
    answer = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(answer, "w")
    main()
