"""Each rule of a claim confirms it, and contradicts it. The records are invented."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import claims
from torchcompile_suite.analysis.claims import Verdict
from torchcompile_suite.analysis.claims.evidence import Evidence, inference, training
from torchcompile_suite.analysis.claims.models import LARGE, MEDIUM, OPERATOR, SMALL
from torchcompile_suite.cell import Cell
from torchcompile_suite.compiled import ARTEFACTS, Compiled, GraphBreak, Profile
from torchcompile_suite.conditions import Accelerator
from torchcompile_suite.measurement import Measurement, Outcome, Status

from . import examples

TINY = inference("softmax_matmul")
SCORER = "relevance_information"
DYNAMIC, STATIC, BUCKETS = (
    matrix.DYNAMIC_SHAPES.cell("gpt_prefill", policy)
    for policy in ("dynamic", "recompile", "buckets")
)
BACKEND = next(iter(workloads.tagged("backends")))
BATCH8 = next(iter(workloads.tagged("batch8")))
TRAINED = next(
    matrix.TRAINING.cell(*point) for point in matrix.TRAINING.points if point[1] == "default"
)


def cell(of: Cell, times: float = 1.0, eager_s: float = 0.04, **figures: object) -> Measurement:
    """A measurement of that ratio, known to about 1 %.

    ``first_s``: of the first call; ``warm_s``: of warm launches; ``slow``: calls until steady.
    ``compiled``: what was compiled.
    """
    first_s, warm_s = (float(str(figures.get(name, 30.0))) for name in ("first_s", "warm_s"))
    slow = int(str(figures.get("slow", 0)))
    launches = []
    for kind, wobble in (("cold", 1.0), ("warm", 1.003), ("warm", 0.997)):
        call_s = eager_s * times * wobble
        one = examples.launch(kind, eager_s, call_s)
        first = first_s if kind == "cold" else warm_s
        warm_up_s = [first, *[1.9 * call_s] * slow, *[call_s] * 10]
        launches.append(msgspec.structs.replace(one, warm_up_s=warm_up_s))
    compiled = figures.get("compiled")
    launches[0] = msgspec.structs.replace(launches[0], compiled=compiled)
    return msgspec.structs.replace(examples.measurement(), cell=of, launches=launches)


def counts(of: Cell, times: float = 1.0, **counted: object) -> Measurement:
    return cell(of, times, compiled=Compiled(**counted))  # type: ignore[arg-type]


def on_gpu(
    workload: str, mode: str = "default", times: float = 1.0, launches: int = 9, busy_s: float = 0.0
) -> Measurement:
    compiled = Compiled(profile=Profile(10, launches * 10, 500, busy_s * 10, 0.0, 0.0))
    return cell(Cell(workload, 1, mode, device="cuda"), times, compiled=compiled)


def on_geforce(times: float) -> Measurement:
    measured = on_gpu("resnet18", times=times)
    launches = []
    for launch in measured.launches:
        assert launch.environment is not None
        there = msgspec.structs.replace(
            launch.environment, device_name="NVIDIA GeForce RTX 2050", accelerator=Accelerator()
        )
        launches.append(msgspec.structs.replace(launch, environment=there))
    return msgspec.structs.replace(measured, launches=launches)


def code(
    workload: str,
    triton: int = 3,
    mode: str = "default",
    library: int = 2,
    outside: int | None = None,
) -> Measurement:
    """Generated code. ``outside``: launches outside of the one CUDA graph; None without graphs."""
    graphs = {} if outside is None else {"cuda_graphs": 1, "outside_launches": outside}
    return examples.generated(workload, mode, examples.code(triton, library, **graphs))


class Case(NamedTuple):
    """Records that confirm a claim, and others that contradict it."""

    claim: str
    confirmed: list[Measurement]
    contradicted: list[Measurement]


def modes(times: tuple[float, ...], seconds: tuple[float, ...]) -> list[Measurement]:
    """The small vision transformer in each mode."""
    pairs = zip(matrix.COMPILED, times, seconds, strict=True)
    return [
        cell(Cell(SMALL, 1, mode, device="cuda"), ratio, first_s=first_s)
        for mode, ratio, first_s in pairs
    ]


def scorers(default: float, overhead: float, trained: float) -> list[Measurement]:
    return [
        cell(inference(SCORER), default),
        cell(inference(SCORER, "reduce-overhead"), overhead),
        cell(training(SCORER)),
        cell(training(SCORER, "bfloat16"), trained),
    ]


def operator(bf16: float, eight_s: float, norm_s: float) -> list[Measurement]:
    return [
        cell(matrix.PRECISION.cell(OPERATOR, 5, "eager"), bf16),
        cell(inference(OPERATOR)),
        cell(inference(OPERATOR, "max-autotune")),  # the same work twice: the drift is known
        cell(inference(OPERATOR, "max-autotune", 5), eager_s=0.2),
        cell(inference(OPERATOR, batch_size=8), eager_s=eight_s),
        cell(inference("operator_groupnorm", batch_size=5), eager_s=norm_s),
    ]


def depth(deep: float, trained: float) -> list[Measurement]:
    step = training(OPERATOR)
    return [
        cell(inference(OPERATOR), 0.9),
        cell(inference("operator_12_layers"), deep),
        cell(step, trained),
        cell(inference(OPERATOR, batch_size=step.batch_size), 0.8),
    ]


def grad(operators: int) -> list[Measurement]:
    wrong = matrix.PROTOCOL.cell("resnet18", "train-mode")
    return [
        cell(inference("resnet18"), compiled=Compiled(operators=10), warm_s=7.0),
        cell(inference("resnet18", "reduce-overhead")),  # the drift is known
        cell(wrong, compiled=Compiled(operators=operators), warm_s=14.0),
    ]


def backends(aot: float, inductor: float) -> list[Measurement]:
    times = {"eager": 1.0, "aot_eager": aot, "inductor": inductor}
    return [cell(matrix.BACKEND.cell(BACKEND, name), ratio) for name, ratio in times.items()]


def shapes(dynamic: int, slower: float) -> list[Measurement]:
    return [
        counts(DYNAMIC, slower, graphs=dynamic),
        counts(STATIC, 0.8, graphs=6),
        counts(BUCKETS, 0.8, graphs=3),
    ]


BREAK = GraphBreak("a branch", "model.py:3")
CASES = [
    Case(
        "cpu-inference-1.5x",
        [cell(inference("resnet18"), 1 / 1.5)],
        [cell(inference("resnet18"), 1.0)],
    ),
    Case("consumer-gpu-1.3x", [on_geforce(1 / 1.3)], [on_geforce(2.0)]),
    Case("first-calls-are-slower", [cell(TINY)], [cell(TINY, first_s=0.03)]),
    Case(
        "naive-timing-misleads",
        [cell(inference("resnet18"), 0.9)],
        [cell(inference("resnet18"), 0.9, first_s=0.03)],
    ),
    Case("eval-and-no-grad-matter", grad(12), grad(10)),
    Case("tiny-function-is-slower-compiled", [cell(TINY, 1.6)], [cell(TINY, 0.8)]),
    Case(
        "softmax-fuses-to-one-kernel",
        [counts(TINY, kernels=1, nodes_before=4)],
        [counts(TINY, kernels=2, nodes_before=4)],
    ),
    Case("softmax-fuses-to-one-gpu-kernel", [code(TINY.workload, 1)], [code(TINY.workload, 2)]),
    Case(
        "data-dependent-flow-breaks-the-graph",
        [counts(inference("branch_on_value"), graph_breaks=[BREAK], tracing={"export": "wrong"})],
        [counts(inference("branch_on_value"), graph_breaks=[], tracing={"export": "wrong"})],
    ),
    Case(
        "compiler-artefacts",
        [counts(TINY, artefacts=list(ARTEFACTS))],
        [counts(TINY, artefacts=list(ARTEFACTS)[1:])],
    ),
    Case(
        "vit-small-reduce-overhead-36-percent",
        [on_gpu(SMALL), on_gpu(SMALL, "reduce-overhead", 0.64, 0)],
        [on_gpu(SMALL), on_gpu(SMALL, "reduce-overhead", 1.0, 0)],
    ),
    Case(
        "vit-medium-reduce-overhead-34-percent",
        [on_gpu(MEDIUM), on_gpu(MEDIUM, "reduce-overhead", 0.66, 0)],
        [on_gpu(MEDIUM), on_gpu(MEDIUM, "reduce-overhead", 0.66, 5)],
    ),
    Case(
        "vit-small-71x-fewer-launches",
        [code(SMALL, 71, library=0), code(SMALL, 71, "reduce-overhead", outside=0)],
        [code(SMALL, 10, library=0), code(SMALL, 10, "reduce-overhead", outside=0)],
    ),
    Case(
        "vit-medium-122x-fewer-launches",
        [code(MEDIUM, 122, library=0), code(MEDIUM, 122, "reduce-overhead", outside=0)],
        [code(MEDIUM, 10, library=0), code(MEDIUM, 10, "reduce-overhead", outside=0)],
    ),
    Case(
        "vit-large-no-benefit",
        [on_gpu(LARGE), on_gpu(LARGE, "reduce-overhead")],
        [on_gpu(LARGE), on_gpu(LARGE, "reduce-overhead", 0.8)],
    ),
    Case("default-mode-minimal", [on_gpu(SMALL)], [on_gpu(SMALL, times=0.8)]),
    Case(
        "max-autotune-equals-reduce-overhead",
        [on_gpu(SMALL, mode) for mode in ("reduce-overhead", "max-autotune")],
        [on_gpu(SMALL, "reduce-overhead"), on_gpu(SMALL, "max-autotune", 0.8)],
    ),
    Case(
        "warm-up-grows-with-mode",
        [
            cell(inference(SMALL, mode), slow=1100 * (mode != "default"))
            for mode in matrix.COMPILED
        ],
        [cell(inference(SMALL, mode)) for mode in matrix.COMPILED],
    ),
    Case(
        "advanced-modes-compile-30-60s",
        modes((1.0,) * 3, (30, 75, 75)),
        modes((1.0,) * 3, (30, 75, 30)),
    ),
    Case(
        "stochastic-operator-1.09x",
        [cell(inference(OPERATOR, "max-autotune", 5), 1 / 1.09)],
        [cell(inference(OPERATOR, "max-autotune", 5), 0.5)],
    ),
    Case(
        "randomness-breaks-the-graph",
        [counts(inference(OPERATOR), graphs=2, graph_breaks=[BREAK])],
        [counts(inference(OPERATOR), graphs=1, graph_breaks=[])],
    ),
    Case(
        "operator-compile-15-18s",
        [cell(inference(OPERATOR, "max-autotune", 5), first_s=16.5)],
        [cell(inference(OPERATOR, "max-autotune", 5), first_s=60)],
    ),
    Case(
        "bf16-beats-compile",
        operator(0.5, 0.04 * 8 / 1.5, 0.2 / 1.2),
        operator(1.0, 0.04 * 8 / 1.5, 0.2 / 1.2),
    ),
    Case("depth-helps-fusion", depth(0.7, 0.6), depth(1.0, 0.6)),
    Case(
        "mode-trade-offs",
        modes((1 / 1.5, 1 / 2.5, 1 / 2), (20, 60, 600)),
        modes((1.0, 1 / 2.5, 1 / 2), (20, 60, 600)),
    ),
    Case(
        "cuda-graphs-launch-100x",
        [
            on_gpu("gpt_decode", busy_s=0.02),
            on_gpu("gpt_decode", "reduce-overhead", 0.5, 1, busy_s=0.02),
        ],
        [
            on_gpu("gpt_decode", busy_s=0.02),
            on_gpu("gpt_decode", "reduce-overhead", 0.75, 1, busy_s=0.02),
        ],
    ),
    Case(
        "cuda-graphs-make-40-launches-one",
        [
            code("gpt_decode"),
            code("gpt_decode", mode="reduce-overhead", outside=0),
        ],
        [
            code("gpt_decode"),
            code("gpt_decode", mode="reduce-overhead", outside=4),
        ],
    ),
    Case(
        "entropy-fusion-3x-traffic",
        [
            counts(
                inference("entropy_in_memory"), 1 / 2.75,
                kernels=1, eager_bytes=3000, bytes_after=1000,
            )
        ],
        [
            counts(
                inference("entropy_in_memory"), 1 / 2.75,
                kernels=2, eager_bytes=3000, bytes_after=1000,
            )
        ],
    ),
    Case("entropy-is-one-gpu-kernel", [code("entropy_in_memory", 1)], [code("entropy_in_memory")]),
    Case("relevance-scorers-2.75x", scorers(1 / 2.75, 1 / 6, 1 / 3), scorers(1.0, 1 / 6, 1 / 3)),
    Case(
        "small-batches-gain-most",
        [cell(inference(BATCH8), 0.5), cell(inference(BATCH8, batch_size=8), 0.8)],
        [cell(inference(BATCH8), 0.8), cell(inference(BATCH8, batch_size=8), 0.5)],
    ),
    Case("dynamic-shapes-need-a-strategy", shapes(1, 1.0), shapes(2, 1.0)),
    Case("backends-locate-the-gain", backends(1.0, 0.5), backends(0.8, 1.0)),
    Case("training-1.4-2.5x", [cell(TRAINED, 0.5)], [cell(TRAINED, 1.0)]),
]  # fmt: skip
# tests/test_claims.py has the rule on guards, tests/test_break_tables.py that on PyTorch's tables.
ELSEWHERE = {"guards-recapture-on-change", "timm-graph-breaks-are-pytorchs"}


def judged(claim: str, records: list[Measurement]) -> claims.Judged:
    here = [one for one in records if not one.cell.target]
    device = next((one.cell.device for one in here), "cuda")
    generated = [one for one in records if one.cell.target]
    return next(one for one in claims.judge(here, device, generated) if one.claim.id == claim)


def test_code_counts_also_where_another_machine_failed() -> None:
    made, failed = code("softmax_matmul"), code("softmax_matmul")
    outcome = Outcome(Status.TIMEOUT, "a launch took 900 s")
    launches = [msgspec.structs.replace(one, generated=None) for one in failed.launches]
    failed = msgspec.structs.replace(failed, outcome=outcome, launches=launches)
    for order in ([made, failed], [failed, made]):
        assert Evidence([], "cpu", order).generated("softmax_matmul") == made.generated


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_a_rule_confirms_and_contradicts(case: Case) -> None:
    for records, verdict in (
        (case.confirmed, Verdict.CONFIRMED),
        (case.contradicted, Verdict.CONTRADICTED),
    ):
        found = judged(case.claim, records)
        assert found.verdict is verdict, found.reason


def test_each_rule_has_a_case() -> None:
    assert {case.claim for case in CASES} | ELSEWHERE == set(claims.RULES)


def test_another_gpu_says_nothing_about_a_consumer_gpu() -> None:
    """One of a data centre gains more, says the document itself."""
    found = judged("consumer-gpu-1.3x", [on_gpu("resnet18", times=0.5)])
    assert found.verdict is Verdict.NOT_MEASURABLE
    assert "another GPU" in found.reason


def test_a_mean_does_not_contradict_what_single_models_gain() -> None:
    models = {"resnet18": 1 / 1.5, "mobilenetv3_small_100": 1.0, "convnext_atto": 1.0}
    found = judged("cpu-inference-1.5x", [cell(inference(name), of) for name, of in models.items()])
    assert found.verdict is Verdict.NOT_MEASURABLE
    assert found.reason.startswith("single models gain as much: 1.14")


def test_a_cpu_that_contradicts_a_gpu_says_so() -> None:
    found = judged(
        "entropy-fusion-3x-traffic",
        [counts(inference("entropy_in_memory"), kernels=2, eager_bytes=3000, bytes_after=1000)],
    )
    assert found.verdict is Verdict.CONTRADICTED
    assert found.reason.endswith("(on a CPU; the document is about a GPU)")


ENTROPY = {"kernels": 1, "eager_bytes": 3000, "bytes_after": 1000}
RESNET, MOBILENET = inference("resnet18"), inference("mobilenetv3_small_100")


def step(mode: str, times: float, dtype: str = "float32") -> Measurement:
    return cell(matrix.TRAINING.cell("resnet18", mode, dtype, 1), times)


@pytest.mark.parametrize(
    ("claim", "records", "verdict"),
    [
        # A loss larger than the document's is no "no benefit", and does not contradict it.
        ("default-mode-minimal", [cell(inference(SMALL), 2.0)], Verdict.NOT_MEASURABLE),
        ("default-mode-minimal", [cell(inference(SMALL), 1.01)], Verdict.CONFIRMED),
        (
            "vit-large-no-benefit",
            [on_gpu(LARGE), on_gpu(LARGE, "reduce-overhead", 2.0)],
            Verdict.NOT_MEASURABLE,
        ),
        # The mean of models decides, and one of them alone does not.
        (
            "small-batches-gain-most",
            [
                *(cell(RESNET, 0.9), cell(inference("resnet18", batch_size=8), 0.85)),
                cell(MOBILENET, 0.5),
                cell(inference(MOBILENET.workload, batch_size=8), 0.8),
            ],
            Verdict.CONFIRMED,
        ),
        # The best mode, in float32.
        ("training-1.4-2.5x", [step("default", 1.0), step("max-autotune", 0.5)], Verdict.CONFIRMED),
        (
            "training-1.4-2.5x",
            [step("default", 1.0), step("default", 0.5, "bfloat16")],
            Verdict.CONTRADICTED,
        ),
        # More than the document's three operators may save.
        (
            "entropy-fusion-3x-traffic",
            [counts(inference("entropy_in_memory"), 0.2, **ENTROPY)],
            Verdict.CONFIRMED,
        ),
        # The profiler makes kernels longer than a call, so they tell nothing of the wait after.
        (
            "cuda-graphs-launch-100x",
            [
                on_gpu("gpt_decode", busy_s=0.02),
                on_gpu("gpt_decode", "reduce-overhead", 0.5, 1, busy_s=0.022),
            ],
            Verdict.NOT_MEASURABLE,
        ),
        (
            "cuda-graphs-launch-100x",
            [
                on_gpu("gpt_decode", busy_s=0.05),
                on_gpu("gpt_decode", "reduce-overhead", 0.5, 1, busy_s=0.01),
            ],
            Verdict.NOT_MEASURABLE,
        ),
        # The gain is there before Inductor.
        ("backends-locate-the-gain", backends(0.8, 0.5), Verdict.CONTRADICTED),
    ],
)
def test_what_else_decides(claim: str, records: list[Measurement], verdict: Verdict) -> None:
    found = judged(claim, records)
    assert found.verdict is verdict, found.reason


def test_modes_are_compared_over_the_same_workloads() -> None:
    """Of a second one, a mode has one launch: its other modes are not in their means either."""
    times = (1 / 1.5, 1 / 2.5, 1 / 2)
    others = [
        cell(Cell(MEDIUM, 1, mode, device="cuda"), 1.0, first_s=900) for mode in matrix.COMPILED
    ]
    others[1] = msgspec.structs.replace(others[1], launches=others[1].launches[:1])
    found = judged("mode-trade-offs", [*modes(times, (20, 60, 600)), *others])
    assert found.verdict is Verdict.CONFIRMED, found.reason
    assert found.reason.endswith(f"mean of {SMALL}")
    assert "default 1.50" in found.reason


def test_a_cell_of_one_launch_does_not_hide_the_interval_of_a_mean() -> None:
    one = cell(MOBILENET, 1 / 1.5)
    one = msgspec.structs.replace(one, launches=one.launches[:1])
    found = judged("cpu-inference-1.5x", [cell(RESNET, 1 / 1.5), one])
    assert found.verdict is Verdict.CONFIRMED
    assert "timm models (1)" in found.reason
