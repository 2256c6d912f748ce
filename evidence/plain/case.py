"""What torch.compile does to a model, without the suite: PYTHON case.py FILE FACTORY [training].

Eager and compiled in turns, each on fresh inputs; medians and their ratio, or a side's error.
"""

import copy
import importlib.util
import inspect
import statistics
import sys
import time

import torch

file, factory, training = sys.argv[1], sys.argv[2], "training" in sys.argv
sys.argv = [file]
spec = importlib.util.spec_from_file_location("case", file)
module = importlib.util.module_from_spec(spec)
sys.modules["case"] = module
spec.loader.exec_module(module)
torch.manual_seed(0)
make = getattr(module, factory)
sized = "batch_size" in inspect.signature(make).parameters
model, inputs = make(1) if sized else make()
model.train(training)
inputs = inputs if isinstance(inputs, (tuple, dict)) else (inputs,)


def timed(call):
    given = copy.deepcopy(inputs)
    start = time.perf_counter()
    output = call(**given) if isinstance(given, dict) else call(*given)
    if training:
        leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(output) if torch.is_tensor(leaf)]
        sum(leaf.float().square().mean() for leaf in leaves).backward()
    return time.perf_counter() - start, output


def show(name, side):
    try:
        with torch.set_grad_enabled(training):
            start = time.perf_counter()
            output = timed(side)[1]
            print(f"{name}: the first call took {time.perf_counter() - start:.1f} s", type(output))
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")


compiled = torch.compile(model)
show("eager", model)
show("compiled", compiled)
print("graphs:", torch._dynamo.utils.counters["stats"].get("unique_graphs", 0))
times = {"eager": [], "compiled": []}
try:
    with torch.set_grad_enabled(training):
        until = time.perf_counter() + 4
        while time.perf_counter() < until:
            for name, side in (("eager", model), ("compiled", compiled)):
                times[name] += [timed(side)[0] for _ in range(20)]
except Exception as error:
    print(f"after {len(times['eager'])} calls: {type(error).__name__}: {str(error)[:200]}")
medians = {name: statistics.median(taken[20:] or [0.0]) for name, taken in times.items()}
print({name: f"{median * 1e6:.1f} us" for name, median in medians.items()})
if medians["eager"]:
    print(f"ratio {medians['compiled'] / medians['eager']:.2f}")
