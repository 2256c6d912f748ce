"""START=$(date +%s.%N) starts.py MODEL WAY FOLDER: seconds to a result. Without START: prepare."""

import os
import sys
import time

import models
import torch

way, folder, making = sys.argv[2], sys.argv[3], "START" not in os.environ
package = f"{folder}/model.pt2"  # the name of a package has a stem
torch.set_grad_enabled(False)
if way == "aot" and not making:
    forward, inputs = torch._inductor.aoti_load_package(package), torch.load(f"{folder}/x")
else:
    module, inputs = models.build(sys.argv[1], 1)
    forward = module.eval() if way == "eager" else torch.compile(module.eval())
if way == "carried" and not making:
    torch.compiler.load_cache_artifacts(torch.load(f"{folder}/cache"))
forward(*inputs)
print(way, round(time.time() - float(os.environ.get("START", "0")), 2))
if making:
    torch.save(inputs, f"{folder}/x")
    torch.save((torch.compiler.save_cache_artifacts() or [b""])[0], f"{folder}/cache")
    program = torch.export.export(module, inputs)
    torch._inductor.aoti_compile_and_package(program, package_path=package)
