"""All registered workloads, also a user's: they build, repeat their numbers and run in eager."""

from __future__ import annotations

import json

import pytest

from torchcompile_suite import workloads
from torchcompile_suite.releases import apart

from .conftest import ReleaseEnvironment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LOOK = """
import json, sys, time
import torch
from torch.utils._pytree import tree_leaves
from torchcompile_suite import workloads
from torchcompile_suite.launch.subject import apply

def built(workload, batch_size):
    torch.manual_seed(1)
    module, inputs = workload.build(batch_size)
    return module.eval(), inputs

def same(module, again):
    state, other = module.state_dict(), again.state_dict()
    return all(torch.equal(state[key], other[key]) for key in state)

for name in sys.argv[1:]:
    found = {"name": name, "error": ""}
    try:
        workload = workloads.get(name)
        module, inputs = built(workload, 1)
        tensors = [leaf for leaf in tree_leaves(inputs) if torch.is_tensor(leaf)]
        found["on_cpu"] = all(t.device.type == "cpu" for t in tensors)
        found["dtypes"] = sorted({str(p.dtype) for p in module.parameters()})
        again, larger = built(workload, 2)
        # Weights rarely depend on the batch size: then one more build answers both questions.
        found["repeats"] = same(module, again) or same(module, built(workload, 1)[0])
        larger = [leaf for leaf in tree_leaves(larger) if torch.is_tensor(leaf)]
        found["grows"] = any(a.shape != b.shape for a, b in zip(tensors, larger))
        with torch.inference_mode():
            outputs = [t for t in tree_leaves(apply(module, inputs)) if torch.is_tensor(t)]
        found["finite"] = all(bool(torch.isfinite(t).all()) for t in outputs) and bool(outputs)
        for extra in ("cases", "stream"):
            if getattr(workload, extra):
                with torch.inference_mode():
                    for each in getattr(workload, extra)(1):
                        apply(module, each)
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(found), flush=True)
"""


# One of each family; every night all.
FIRST = {workloads.get(name).family: name for name in reversed(workloads.names())}
NAMES = [
    name if name in FIRST.values() else pytest.param(name, marks=pytest.mark.nightly)
    for name in workloads.names()
]


@pytest.fixture(scope="module")
def seen(
    newest: ReleaseEnvironment, request: pytest.FixtureRequest
) -> dict[str, dict[str, object]]:
    """What one process sees of the workloads that are tested in this run."""
    items = [item for item in request.session.items if item.path == request.path]
    names = [
        str(item.callspec.params["name"]) for item in items if isinstance(item, pytest.Function)
    ]
    for library in apart.read():
        newest.with_apart(library)
    done = newest.run("-c", LOOK, *names, timeout=1700)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {each["name"]: each for each in found}


@pytest.mark.parametrize("name", NAMES)
def test_a_workload(seen: dict[str, dict[str, object]], name: str) -> None:
    found = seen[name]
    assert found["error"] == ""
    assert found["on_cpu"]
    assert found["dtypes"] in ([], ["torch.float32"])
    assert found["repeats"], "the same seed must build the same numbers"
    assert found["grows"], "batch_size must change the input"
    assert found["finite"]
