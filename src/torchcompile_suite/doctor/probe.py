"""What the Python that is to be measured says of itself: run as a script by it, prints JSON.

Standard library only, and no import of the suite: that Python need not have it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import sysconfig
from importlib import metadata


def version(name: str) -> str:
    """The distribution's version, or nothing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def tried(module: str) -> str:
    """Why the module does not import, in one line, or nothing."""
    try:
        importlib.import_module(module)
    except BaseException as fault:
        lines = str(fault).strip().splitlines()
        return f"{type(fault).__name__}: {lines[0] if lines else ''}"
    return ""


def main() -> None:
    """Print what there is."""
    names = ("torch", "torchvision", "triton", "setuptools", "timm")
    found = {
        "python": sys.version.split()[0],
        "versions": {name: version(name) for name in names},
        "include": sysconfig.get_path("include"),
        "torch_error": tried("torch"),
        "cuda_built": "",
        "cuda_available": False,
        "cuda_error": "",
        "torchvision_error": "",
        "triton_error": "",
        "wants_torch": [],
        "threads": 0,
    }
    if not found["torch_error"]:
        import torch

        found["threads"] = torch.get_num_threads()
        found["cuda_built"] = torch.version.cuda or ""
        try:
            found["cuda_available"] = torch.cuda.is_available()
            if found["cuda_built"] and not found["cuda_available"]:
                torch.cuda.init()
        except BaseException as fault:
            found["cuda_error"] = (str(fault).strip().splitlines() or [""])[0]
        if version("torchvision"):
            found["torchvision_error"] = tried("torchvision")
            found["wants_torch"] = [
                each
                for each in metadata.requires("torchvision") or ()
                if each.partition(";")[0].strip().startswith("torch")
            ]
        if version("triton"):
            found["triton_error"] = tried("triton")
    print(json.dumps(found))


if __name__ == "__main__":
    # What imports print must not be taken for the answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(answer, "w")
    main()
