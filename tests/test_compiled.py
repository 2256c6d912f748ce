"""What a cold launch reports of the compiler, on the oldest release of the ledger and the newest.

Where the API of PyTorch changed (`launch.inspect.dynamo` and `launch.inspect.inductor`), both sides
are tested. What does not depend on the release is tested on the newest.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchcompile_suite.cell import Cell
from torchcompile_suite.compiled import ARTEFACTS
from torchcompile_suite.engine import processes
from torchcompile_suite.launch import caches, messages
from torchcompile_suite.launch.inspect import artefacts
from torchcompile_suite.measurement import Launch, Status
from torchcompile_suite.releases import extras
from torchcompile_suite.request import Request

from .conftest import BRIEF, HEADERS, ReleaseEnvironment, releases

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WORKLOADS = Path(__file__).with_name("workloads_to_look_into.py")

Run = Callable[..., Launch]

# All launches share the precompiled header.
VARIABLES = {HEADERS: "1"}

CELLS = {
    "softmax": Cell("softmax_matmul", 1, "default"),
    "reduce-overhead": Cell("softmax_matmul", 1, "reduce-overhead"),
    "branch": Cell("branch_on_value", 1, "default"),
    "breaking": Cell("breaking", 1, "default"),
    "entropy": Cell("entropy_in_cache", 1, "default"),
    "dropping": Cell("dropping", 1, "default"),
    "training": Cell("breaking", 1, "default", phase="training", accumulation=4),
    "bfloat16": Cell("streaming", 1, "eager", dtype="bfloat16", baseline="eager-float32"),
    # Dynamo counts the same graphs for a backend that compiles none of them.
    "recompile": Cell("streaming", 1, "default", shapes="recompile", backend="eager"),
    "dynamic": Cell("streaming", 1, "default", shapes="dynamic", backend="eager"),
    "marked": Cell("streaming", 1, "default", shapes="marked", backend="eager"),
    "buckets": Cell("streaming", 1, "default", shapes="buckets", backend="eager"),
    "unbacked": Cell("streaming", 1, "default", shapes="unbacked"),
    "oblivious": Cell("streaming", 1, "default", shapes="oblivious"),
    "freezing": Cell("repeating", 1, "default", way="freezing"),
    "regional": Cell("repeating", 1, "default", way="regional", backend="eager"),
    "regional in training": Cell("repeating", 1, "default", way="regional", phase="training"),
    "nested region": Cell("repeating", 1, "default", way="nested-region"),
    "aot_eager": Cell("streaming", 1, "default", backend="aot_eager"),
    "small": Cell("small_10x10", 1, "default"),
    "flex": Cell("attention_flex_128", 1, "default"),
    "flex causal": Cell("attention_flex_causal_128", 1, "default"),
    "sdpa causal": Cell("attention_sdpa_causal_128", 1, "default"),
    "int8": Cell("repeating", 1, "default", dtype="int8-weight-only", baseline="eager-float32"),
    "int8 in eager": Cell("gpt_decode", 1, "eager", dtype="int8-dynamic", baseline="eager-float32"),
}


# What the suite decides, whatever the release: measured on the newest only.
OURS = {
    "dropping in training": Cell("dropping", 1, "default", phase="training"),
    "dropping wrongly": Cell("dropping_wrongly", 1, "default"),
    "wrong elsewhere": Cell("wrong_elsewhere", 1, "default"),
    "wrong gradient": Cell("wrong_gradient", 1, "default", phase="training", backend="aot_eager"),
    "corner": Cell("at_a_corner", 1, "default", phase="training"),
    "freezing with gradients": Cell("repeating", 1, "default", way="freezing", protocol="grad-on"),
    "freezing for autograd": Cell("streaming", 1, "default", way="freezing", backend="aot_eager"),
    "no blocks": Cell("streaming", 1, "default", way="regional"),
    "padded wrongly": Cell("mixing_rows", 1, "default", shapes="buckets"),
    "no stream": Cell("breaking", 1, "default", shapes="dynamic"),
    "data-inside": Cell("streaming", 1, "default", protocol="data-inside"),
    "grad-on": Cell("streaming", 1, "default", protocol="grad-on"),
    "no-sync": Cell("streaming", 1, "default", protocol="no-sync"),
    "libc": Cell("streaming", 1, "eager", allocator="libc"),
    "tcmalloc": Cell("streaming", 1, "eager", allocator="tcmalloc"),
    "no allocator": Cell("streaming", 1, "eager", allocator="no-such-malloc"),
}


@pytest.fixture(scope="module", params=releases("v2.4"))
def environment(
    request: pytest.FixtureRequest, make_environment: Callable[[str], ReleaseEnvironment]
) -> ReleaseEnvironment:
    return make_environment(request.param)


class Launches(dict[str, Launch]):
    """A cold launch of each cell, made when a test looks at it first.

    All share the folder for temporary files, so the C++ headers are precompiled once. What
    compiling costs is tested in tests/test_launch.py.
    """

    def __init__(
        self, environment: ReleaseEnvironment, cells: dict[str, Cell], folder: Path
    ) -> None:
        self.environment = environment
        self.cells = cells
        self.folder = folder
        (folder / "shared").mkdir()

    def __missing__(self, name: str) -> Launch:
        cache = self.folder / str(len(self))
        cache.mkdir()
        (cache / caches.TEMPORARY).symlink_to(self.folder / "shared")
        request = Request(self.cells[name], "cold", str(cache), BRIEF)
        self[name] = self.environment.launch(request, WORKLOADS, **VARIABLES)
        return self[name]


@pytest.fixture(scope="module")
def launches(environment: ReleaseEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Launches:
    return Launches(environment, CELLS, tmp_path_factory.mktemp("launches"))


@pytest.fixture(scope="module")
def ours(newest: ReleaseEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Launches:
    return Launches(newest, OURS, tmp_path_factory.mktemp("ours"))


def ok(launch: Launch) -> Any:
    """The `Compiled` of a launch that succeeded."""
    assert launch.outcome.ok, launch.outcome
    assert launch.compiled is not None
    return launch.compiled


@pytest.mark.nightly
def test_small_operators_are_one_graph_of_as_many_calls(launches: Launches) -> None:
    compiled = ok(launches["small"])
    assert (compiled.graphs, compiled.operators) == (1, 10)
    assert compiled.eager_operators == 10
    assert compiled.guard_check_s is not None


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["flex", "flex causal"])
def test_flex_attention_is_one_graph_where_a_release_has_it(
    launches: Launches, environment: ReleaseEnvironment, name: str
) -> None:
    """In eager it captures graphs of its own, which must not count."""
    launch = launches[name]
    if environment.version.startswith("2.4."):
        assert launch.outcome.status is Status.UNSUPPORTED
        assert launch.outcome.reason == "FlexAttention came with torch 2.5"
        return
    assert ok(launch).graphs == 1
    assert launch.accuracy is not None
    assert launch.accuracy.reference == "float64"
    # The count refuses FlexAttention, and in 2.9 no call in eager works afterwards.
    assert list(launch.stages_s)[-2:] == ["traffic", "recapture"]
    assert {"eager_operators", "eager_bytes"} <= ok(launch).unknown.keys()


@pytest.mark.nightly
def test_attention_with_a_mask_is_measured_everywhere(launches: Launches) -> None:
    assert ok(launches["sdpa causal"]).graphs == 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["int8", "int8 in eager"])
def test_int8_is_compared_with_eager_int8_and_its_error_is_recorded(
    launches: Launches, environment: ReleaseEnvironment, name: str
) -> None:
    launch = launches[name]
    if "torchao" not in extras.of(environment.version):
        assert launch.outcome.status is Status.UNSUPPORTED
        assert "table of compatible versions has none for torch 2.4" in launch.outcome.reason
        return
    assert launch.outcome.ok, launch.outcome
    checked = launch.accuracy
    assert checked is not None
    assert (checked.reference, checked.eager_error) == ("same-dtype", 0.0)
    assert checked.mode_error is not None
    assert checked.float32_error is not None
    # Eight bits: a few thousandths of the largest weight. Float32 rounds a million times finer.
    assert 1e-4 < checked.float32_error < 0.2
    if launch.compiled is None:
        assert checked.mode_error == 0.0
    assert launch.environment is not None
    assert launch.environment.packages["torchao"].startswith(
        extras.of(environment.version)["torchao"]
    )


def test_softmax_is_one_kernel_beside_the_product(launches: Launches) -> None:
    compiled = ok(launches["softmax"])
    assert (compiled.graphs, compiled.kernels, compiled.launches) == (1, 1, 2)
    assert compiled.graph_breaks == []
    assert compiled.operators == 2
    assert compiled.nodes_before > compiled.nodes_after == 2
    assert compiled.bytes_before > compiled.bytes_after == 5 * 100 * 100 * 4


def test_guards_are_counted_and_timed(launches: Launches) -> None:
    compiled = ok(launches["softmax"])
    assert compiled.guards >= 2
    assert 1e-8 < compiled.guard_check_s < 1e-3


def test_each_change_recaptures_once_and_a_repeat_never(launches: Launches) -> None:
    compiled = ok(launches["softmax"])
    changes = {"dtype": 1, "requires_grad": 1, "size": 1, "stride": 1, "repeat": 0}
    assert {name: compiled.recaptures[name] for name in changes} == changes
    if "device" not in compiled.recaptures:
        assert compiled.unknown["recaptures.device"]


def test_every_artefact_can_be_opened(launches: Launches) -> None:
    assert set(ok(launches["softmax"]).artefacts) == set(ARTEFACTS)


def test_phases_add_up_to_no_more_than_the_first_call(launches: Launches) -> None:
    launch = launches["softmax"]
    phases = ok(launch).phases_s
    assert set(phases) == {"dynamo", "aot_autograd", "inductor", "kernel_build"}
    assert all(seconds > 0 for seconds in phases.values())
    assert sum(phases.values()) < launch.warm_up_s[0]
    assert sum(phases.values()) > 0.5 * launch.warm_up_s[0]


@pytest.mark.parametrize("name", ["training", pytest.param("breaking", marks=pytest.mark.nightly)])
def test_a_break_has_a_reason_and_a_place(launches: Launches, name: str) -> None:
    compiled = ok(launches[name])
    if name == "breaking":
        assert compiled.graphs == 2
    (graph_break,) = compiled.graph_breaks
    lines = WORKLOADS.read_text().splitlines()
    name, _, number = graph_break.where.partition(":")
    assert name == WORKLOADS.name
    assert "graph_break()" in lines[int(number) - 1]
    assert graph_break.reason


@pytest.mark.nightly
def test_a_branch_on_a_value_breaks_and_tracers_get_it_wrong(launches: Launches) -> None:
    compiled = ok(launches["branch"])
    assert len(compiled.graph_breaks) == 1
    assert compiled.tracing["torch.jit.trace"] == "wrong result"
    assert compiled.tracing["torch.fx.symbolic_trace"].startswith("raises TraceError")


@pytest.mark.nightly
def test_dropout_breaks_no_graph(launches: Launches) -> None:
    compiled = ok(launches["dropping"])
    assert (compiled.graphs, compiled.graph_breaks) == (1, [])


@pytest.mark.nightly
def test_draws_are_compared_in_training_too(ours: Launches) -> None:
    ok(ours["dropping in training"])


@pytest.mark.nightly
def test_fusion_saves_traffic(launches: Launches) -> None:
    compiled = ok(launches["entropy"])
    assert compiled.kernels == 1
    assert compiled.eager_operators == 5
    assert compiled.eager_bytes > 6 * compiled.bytes_after


@pytest.mark.nightly
def test_torch_gives_no_reason_for_no_cuda_graphs_on_a_cpu(launches: Launches) -> None:
    assert ok(launches["reduce-overhead"]).cudagraph_skips == []


SKIP = """
from torchcompile_suite.launch.inspect import inductor
from torch._inductor import cudagraph_utils
with inductor.watch_cudagraph_skips() as reasons:
    cudagraph_utils.log_cudagraph_skip_and_bump_counter("skipping cudagraphs due to a test")
    # Newer releases also warn about a graph with many CUDA graphs.
    if warn := getattr(cudagraph_utils, "maybe_warning_due_to_dynamic_shape", None):
        assert warn({(size,): None for size in range(99)}, 99)
print(reasons)
"""


def test_the_reason_for_skipped_cuda_graphs_is_kept(environment: ReleaseEnvironment) -> None:
    done = environment.run("-c", SKIP)
    assert done.stdout == "['skipping cudagraphs due to a test']\n", done.stderr


NOT_KNOWN = """
import torch
from torch._inductor.virtualized import V
from torchcompile_suite.launch.inspect import inductor
inside = type("InvokeSubgraph", (), {})()
chosen = type("SubgraphBuffer", (), {})()
node = lambda own: type("Node", (), {"node": own, "get_read_write_buffers_sizes": lambda self: 8})()
for own in (None, chosen, inside):
    generated = inductor.Generated()
    generated.add([node(own)])
    counts, unknown = generated.known()
    print(counts.get("launches"), counts["nodes_after"], list(unknown))
graph = type("Graph", (), {"name": "benchmark_decompose_k_mm_0"})()
with V.set_graph_handler(graph):
    print(inductor.is_candidate())
print(inductor.is_candidate())
with inductor.watch_generation() as generated:
    torch.compile(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)))(torch.randn(9))
print("launches" in generated.known()[1])
"""


def test_launches_are_unknown_where_a_graph_runs_another(environment: ReleaseEnvironment) -> None:
    done = environment.run("-c", NOT_KNOWN)
    lines = ["0 1 []", "0 0 []", "None 1 ['launches']", "True", "False", "True"]
    assert done.stdout.splitlines() == lines, done.stderr


EQUAL_GRAPHS = """
import torch
from torchcompile_suite.launch.inspect import inductor
def twice(x):
    x = torch.relu(x)
    torch._dynamo.graph_break()
    return torch.relu(x)
torch.compile(twice)(torch.randn(9, requires_grad=True))
print(inductor.served_from_cache())
"""


def test_a_graph_that_equals_another_one_counts_once(environment: ReleaseEnvironment) -> None:
    done = environment.run("-c", EQUAL_GRAPHS)
    # In 2.4 these caches are off.
    assert done.stdout.strip() == str(int(environment.version != "2.4.1")), done.stderr


FIRST_CAPTURE = """
import torch
from torchcompile_suite.launch.inspect import dynamo
torch._dynamo.config.inline_inbuilt_nn_modules = False
compiled = torch.compile(torch.nn.Linear(4, 4), backend="eager", dynamic=False)
with dynamo.watch_recompiles() as recompiled:
    compiled(torch.randn(2, 4))
    print(len(recompiled))
    compiled(torch.randn(3, 4))
    print(len(recompiled))
"""


@pytest.mark.nightly
def test_a_first_capture_is_no_recompile(
    make_environment: Callable[[str], ReleaseEnvironment],
) -> None:
    done = make_environment("v2.9").run("-c", FIRST_CAPTURE)
    assert done.stdout.split() == ["0", "1"], done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "wrong gradient",
        pytest.param("dropping wrongly", marks=pytest.mark.nightly),
        pytest.param("wrong elsewhere", marks=pytest.mark.nightly),
        pytest.param("padded wrongly", marks=pytest.mark.nightly),
    ],
)
def test_wrong_results_are_found(ours: Launches, name: str) -> None:
    assert ours[name].outcome.status is Status.WRONG_RESULT, ours[name].outcome


def test_a_gradient_is_wrong_if_it_is_wrong_with_each_set_of_weights(
    ours: Launches,
) -> None:
    assert ours["wrong gradient"].outcome.reason.endswith("with 4 other sets of weights")


@pytest.mark.nightly
def test_an_output_is_wrong_with_one_set_of_weights(ours: Launches) -> None:
    assert "sets of weights" not in ours["wrong elsewhere"].outcome.reason


@pytest.mark.nightly
def test_rounding_at_a_corner_is_no_wrong_result(ours: Launches) -> None:
    checked = ours["corner"].accuracy
    assert ours["corner"].outcome.ok, ours["corner"].outcome
    assert checked is not None
    assert checked.mode_error is not None
    assert checked.mode_error < 1e-5
    (note,) = checked.notes
    assert note.startswith("passed with set 2 of weights; with set 1 a value may lie at a corner")


def test_a_training_step_runs_forward_and_backward(launches: Launches) -> None:
    launch = launches["training"]
    compiled = ok(launch)
    assert launch.accuracy is not None
    assert launch.accuracy.reference == "float64"
    assert "phases_s" in compiled.unknown
    assert len(compiled.graph_breaks) == 1


@pytest.mark.nightly
def test_bfloat16_is_paired_with_float32(launches: Launches) -> None:
    launch = launches["bfloat16"]
    assert launch.outcome.ok, launch.outcome
    assert launch.accuracy is not None
    assert launch.accuracy.eager_error is not None
    assert launch.accuracy.eager_error > 1e-4, "it ran in bfloat16"


@pytest.mark.parametrize(
    ("policy", "graphs"),
    [
        ("recompile", 4),
        ("buckets", 3),
        pytest.param("marked", 1, marks=pytest.mark.nightly),
        pytest.param("dynamic", 1, marks=pytest.mark.nightly),
    ],
)
def test_shapes_are_met_as_the_policy_says(launches: Launches, policy: str, graphs: int) -> None:
    assert ok(launches[policy]).graphs == graphs
    assert ok(launches[policy]).recompiles == graphs - 1


def lacks(environment: ReleaseEnvironment, launch: Launch, name: str) -> bool:
    """Whether the release is the one without the feature: then the launch has to say so."""
    if environment.version.startswith("2.4."):
        assert launch.outcome.status is Status.UNSUPPORTED, launch.outcome
        assert f"torch {environment.version}" in launch.outcome.reason
        assert name in launch.outcome.reason
        return True
    return False


@pytest.mark.nightly
def test_new_policies_give_a_size_of_one_no_graph_of_its_own(
    environment: ReleaseEnvironment, launches: Launches
) -> None:
    for name, needed in (("unbacked", "mark_unbacked"), ("oblivious", "backed_size_oblivious")):
        if not lacks(environment, launches[name], needed):
            assert ok(launches[name]).graphs == 1


@pytest.mark.parametrize(
    ("policy", "new_shapes"),
    [
        ("recompile", 3),
        ("buckets", 2),
        *(
            pytest.param(policy, 0, marks=pytest.mark.nightly)
            for policy in ("marked", "dynamic", "unbacked", "oblivious")
        ),
    ],
)
def test_fail_on_recompile_tells_which_requests_need_a_capture(
    environment: ReleaseEnvironment, launches: Launches, policy: str, new_shapes: int
) -> None:
    """Batches of 2, 3, 5 and 6 are served; then 4, 6, 10 and 12 come, in buckets 4, 8 and 16."""
    if not environment.version.startswith("2.4."):
        assert ok(launches[policy]).recaptures == {"tail": 0, "new shapes": new_shapes}
    elif policy not in ("unbacked", "oblivious"):
        compiled = ok(launches[policy])
        assert compiled.recaptures == {}
        assert "set_stance" in compiled.unknown["recaptures.tail"]


def test_the_block_is_compiled_once_for_all(launches: Launches) -> None:
    compiled = ok(launches["regional"])
    assert (compiled.graphs, compiled.recompiles, compiled.blocks) == (1, 0, 3)


@pytest.mark.nightly
def test_other_ways_count_the_blocks_too(
    environment: ReleaseEnvironment, launches: Launches
) -> None:
    assert ok(launches["regional in training"]).blocks == 3
    if not lacks(environment, launches["nested region"], "nested_compile_region"):
        compiled = ok(launches["nested region"])
        assert (compiled.graphs, compiled.blocks) == (1, 3)
    assert ok(launches["freezing"]).blocks == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no blocks", "Module repeats no block"),
        pytest.param("freezing with gradients", "without gradients", marks=pytest.mark.nightly),
        pytest.param(
            "freezing for autograd", "backend aot_eager does not freeze", marks=pytest.mark.nightly
        ),
        ("no-sync", "returns when it is done"),
        pytest.param("no stream", "has no stream", marks=pytest.mark.nightly),
        ("no allocator", "no allocator 'no-such-malloc'"),
    ],
)
def test_what_makes_no_sense_or_does_not_exist_says_why(
    ours: Launches, name: str, words: str
) -> None:
    assert ours[name].outcome.status is Status.UNSUPPORTED, ours[name].outcome
    assert words in ours[name].outcome.reason


WAYS = """
import sys
import torch
from torchcompile_suite.cell import Cell
from torchcompile_suite.launch import subject
from torchcompile_suite.workloads import get

module, inputs = get("repeating").build(1)
module.eval()
for way in sys.argv[1:]:
    torch._dynamo.reset()
    cell = Cell("repeating", 1, "default", way=way)
    with torch.inference_mode():
        eager = module(*inputs)
        compiled = subject.compiler(cell)(module)
        first = compiled(*inputs)
        assert torch.allclose(first, eager, atol=1e-5), way
        assert all(block._compiled_call_impl is None for block in module.modules()), way
        assert [type(block).__mro__[1] for block in module] == [torch.nn.Module] * 5, way
        for parameter in module.parameters():
            parameter.mul_(2)
        # Weights that are packed into another layout are copies; others are still the module's own.
        followed = torch.allclose(compiled(*inputs), module(*inputs), atol=1e-4)
        for parameter in module.parameters():
            parameter.div_(2)
    print(way, "weights" if followed else "constants")
"""


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param(("whole", "regional"), marks=pytest.mark.nightly),
        # In a process of its own: its setting stays, and regional's of 2.4 undoes it.
        pytest.param(("freezing",), marks=pytest.mark.nightly),
        # Dynamo fails if the process has compiled the module in another way before.
        ("nested-region",),
    ],
    ids=" ".join,
)
def test_only_frozen_weights_are_constants_and_the_module_stays_as_it_is(
    environment: ReleaseEnvironment, ways: tuple[str, ...]
) -> None:
    if "nested-region" in ways and environment.version.startswith("2.4."):
        return  # it says so: see above
    variables = environment.variables(TORCHCOMPILE_SUITE_WORKLOADS=str(WORKLOADS))
    done = environment.run("-c", WAYS, *ways, env=variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{way} {'constants' if way == 'freezing' else 'weights'}" for way in ways
    ]


BLOCKS = """
from torch import nn
from torchcompile_suite.launch import subject

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

def show(module):
    print([block.layer.in_features for block in subject.repeated_blocks(module)])

shared = Block(4)
small = nn.Sequential(*(Block(2) for _ in range(9)))
show(nn.Sequential(nn.ReLU(), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 4)))
show(nn.ModuleDict({"a": Block(4), "b": Block(4)}))
show(nn.Sequential(shared, shared))
show(nn.Sequential(Block(4), Block(8), Block(4)))
show(nn.Sequential(small, nn.ModuleList([Block(8), Block(8)])))
"""


def test_the_repeated_block_is_the_set_of_equal_siblings_with_most_weights(
    newest: ReleaseEnvironment,
) -> None:
    done = newest.run("-c", BLOCKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "[]", "[]", "[4, 4]", "[8, 8]"]


@pytest.mark.nightly
def test_protocols_with_a_mistake_are_timed_like_any_other(ours: Launches) -> None:
    for name in ("data-inside", "grad-on"):
        ok(ours[name])
        assert len(ours[name].pairs_s) >= 3


@pytest.mark.nightly
def test_a_backend_without_inductor_is_timed_like_any_other(launches: Launches) -> None:
    ok(launches["aot_eager"])
    assert len(launches["aot_eager"].pairs_s) >= 3
    assert "generates no code" in ok(launches["aot_eager"]).unknown["kernels"]


@pytest.mark.nightly
def test_an_allocator_is_loaded_or_missed_with_the_package(ours: Launches) -> None:
    assert ours["libc"].environment is not None
    assert ours["libc"].environment.allocator.startswith("glibc")
    launch = ours["tcmalloc"]
    assert launch.environment is not None
    if launch.outcome.ok:
        assert launch.environment.allocator == "tcmalloc"
    else:
        assert "apt-get install libtcmalloc-minimal4" in launch.outcome.reason


def opened(environment: ReleaseEnvironment, cell: Cell, folder: Path) -> artefacts.Written:
    variables = {"TORCHCOMPILE_SUITE_WORKLOADS": str(WORKLOADS)}
    order = messages.Order(cell, folder=str(folder))
    measured = processes.Environment(environment.python, variables)
    return processes.asked(measured, artefacts.MODULE, order, 600, artefacts.Written)


def test_open_says_which_kernel_came_from_which_line(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    assert opened(newest, CELLS["softmax"], tmp_path / "opened").kinds
    index = (tmp_path / "opened" / "index.md").read_text()
    assert "fusion.py:" in index
    assert "torch.softmax(x @ y" in index
    assert "aten." in index
    assert "TENSOR_MATCH" in (tmp_path / "opened" / "guards.txt").read_text()
    assert (tmp_path / "opened" / "graph_breaks.txt").read_text() == "none\n"


def test_open_of_what_cannot_be_built_is_one_line(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    written = opened(newest, Cell("nobody", 1, "default"), tmp_path / "opened")
    assert written.kinds == []
    assert "no workload 'nobody'" in written.error
    assert "\n" not in written.error
