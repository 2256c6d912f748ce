"""``python -m torchcompile_suite.launch.service --connection FD ORDER``: a service starts.

A plain program, as a user would write it. Until its first result it imports torch, the model's
library and the model, and nothing of the suite but the registry of models. `LOADERS` has a function
for each way to load what an earlier process has made.
"""

from __future__ import annotations

import time

BEGUN_S = time.monotonic()

import json  # noqa: E402 (the clock comes first)
import os  # noqa: E402
import struct  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from torchcompile_suite.host.orphans import die_with_parent  # noqa: E402

Order = dict[str, Any]
# Calls a model: the module (None for a package) and its inputs, a tuple by position or a dict by
# name.
Call = Callable[[Any, Any], Any]


def aoti_load_package(order: Order) -> Call:
    """AOTInductor's package."""
    from torch._inductor import aoti_load_package

    package = aoti_load_package(str(artefact(order, "model.pt2")))
    return lambda _, inputs: apply(package, inputs)


def aot_load(order: Order) -> Call:
    """AOTInductor's library, before there were packages."""
    from torch._export import aot_load

    library = aot_load(str(artefact(order, "model.so")), order["device"])
    return lambda _, inputs: apply(library, inputs)


def precompile_load(order: Order) -> Call:
    """What torch.compiler.precompile.capture wrote."""
    from torch.compiler import precompile

    files = artefact(order, "model.py"), artefact(order, "model.cache")
    return precompile.load(*files)  # type: ignore[no-any-return]


def load_compiled_function(order: Order) -> Call:
    """What torch.compile(...).aot_compile wrote. Its first argument is the module."""
    from torch.compiler import load_compiled_function

    with artefact(order, "model.bin").open("rb") as file:
        loaded = load_compiled_function(file)
    return lambda module, inputs: (
        loaded(module, **inputs) if isinstance(inputs, dict) else loaded(module, *inputs)
    )


def load_cache_artifacts(order: Order) -> None:
    """The caches of another process, into this one's folders."""
    import torch

    torch.compiler.load_cache_artifacts(artefact(order, "cache.bin").read_bytes())


# Loads what the compiled model needs. None: the module has to be compiled as well.
LOADERS: dict[str, Callable[[Order], Call | None]] = {
    "torch._inductor.aoti_load_package": aoti_load_package,
    "torch._export.aot_load": aot_load,
    "torch.compiler.precompile.load": precompile_load,
    "torch.compiler.load_compiled_function": load_compiled_function,
    "torch.compiler.load_cache_artifacts": load_cache_artifacts,
}
# These need no code of the model.
PACKAGES = ("torch._inductor.aoti_load_package", "torch._export.aot_load")


def artefact(order: Order, name: str) -> Path:
    """The path of a file that was made for the service."""
    return Path(order["folder"], "artefacts", name)


def apply(model: Any, inputs: Any) -> Any:
    """Call the model with its inputs."""
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


class Service:
    """From the start of the process to the first result.

    ``ended_s``: when each phase ended. ``stage``: what it is doing, in the words of a launch.
    """

    def __init__(self, order: Order) -> None:
        """The interpreter has started."""
        self.order = order
        self.ended_s = {"interpreter": BEGUN_S}
        self.stage = "import"

    def end(self, phase: str) -> None:
        """The work of a phase is done."""
        self.ended_s[phase] = time.monotonic()

    def first_result(self) -> Any:
        """The model's outputs for the first request."""
        order = self.order
        import torch

        module = None
        if order["loader"] in PACKAGES:
            self.end("imports")
        else:
            module = self.model()
        inputs = torch.load(Path(order["folder"], "inputs.pt"), weights_only=False)
        self.end("weights and inputs")
        self.stage = "compile" if order["start"] else "eager"
        with torch.inference_mode():
            result = self.ready(module)(module, inputs)
            if order["device"] != "cpu":
                getattr(torch, order["device"]).synchronize()
        self.end("first call")
        return result

    def model(self) -> Any:
        """The module with its weights, as a service gets it from its code and a checkpoint."""
        order = self.order
        import random  # torch has imported it

        import torch

        from torchcompile_suite import workloads

        workload = workloads.get(order["workload"])
        for name in workload.imports:
            workloads.library(name)
        self.end("imports")
        self.stage = "build"
        # A model may draw what is in no checkpoint, and `prepare` has drawn the same.
        torch.manual_seed(order["seed"])
        random.seed(order["seed"])
        numpy = sys.modules.get("numpy")
        # `numpy.random` takes 10 ms to import, and the suite's models draw nothing with it.
        if numpy and (workload.foreign or "numpy.random" in sys.modules):
            numpy.random.seed(order["seed"])
        module = workload.build(order["batch_size"])[0]
        try:
            module.eval()  # a module of a user's own may return nothing
        except NotImplementedError:  # the mode of an exported module is fixed
            pass
        module.to(order["device"])
        self.end("model")
        weights = torch.load(Path(order["folder"], "weights.pt"), weights_only=False)
        module.load_state_dict(weights)
        return module

    def ready(self, module: Any) -> Call:
        """The model as it is called: eager, loaded, or about to be compiled by its first call."""
        order = self.order
        if not order["start"]:
            return apply
        if order["loader"]:
            loaded = LOADERS[order["loader"]](order)
            self.end("artefacts")
            if loaded is not None:
                return loaded
        import torch

        compiled = torch.compile(module, mode=order["mode"])
        self.end("compiler")
        return lambda _, inputs: apply(compiled, inputs)


def main() -> None:
    """Start, say when each phase ended, and wait for the driver."""
    die_with_parent()
    connection, order = int(sys.argv[2]), json.loads(sys.argv[3])
    service = Service(order)
    try:
        result = service.first_result()
    except Exception as error:
        from torchcompile_suite.launch import prepare

        prepare.failed(connection, order, error, service.stage)
    else:
        say(connection, {"type": "FirstResult", "ended_s": service.ended_s})
        from torchcompile_suite.launch import prepare

        prepare.checked(connection, order, result)
    # The normal exit of the interpreter waits seconds for threads and compile workers of torch.
    os._exit(0)


def say(connection: int, message: dict[str, Any]) -> None:
    """Write a message as `multiprocessing.connection.Connection` reads it."""
    data = json.dumps(message).encode()
    os.write(connection, struct.pack("!i", len(data)) + data)


if __name__ == "__main__":
    main()
