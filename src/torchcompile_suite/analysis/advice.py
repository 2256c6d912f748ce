"""What to do about a model: use which mode, and what to mend, from recorded measurements only.

The texts of graph breaks, guards and CUDA graph skips are PyTorch's own, as of 2.4 to 2.15; what is
not recognised gets the general remedy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..cell import GraphBreak, Launch, Measurement
from ..modes import EAGER
from . import statistics
from .statistics import Interval
from .summary import Row
from .verdict import Pays, best, verdict


class Advice(NamedTuple):
    """Something to mend: what was seen, where (``file.py:line`` or nothing), and the remedy."""

    what: str
    where: str
    remedy: str


# What a reason says (in lower case), and what usually helps; the first that matches counts.
_BREAKS = [
    (
        r"generic_jump|data-dependent branch|data-dependent jump",
        "a branch on a tensor's value: use torch.where, or torch.cond for large branches",
    ),
    (
        r"data-dependent (operator|output)|_local_scalar_dense|\.item\(\)|scalar_outputs",
        "the value of a tensor becomes a Python number: keep it a tensor, or set "
        "torch._dynamo.config.capture_scalar_outputs = True",
    ),
    (
        r"dynamic shape operator|nonzero|capture_dynamic_output_shape_ops",
        "the shape of a result depends on values: use a mask of fixed shape, or set "
        "torch._dynamo.config.capture_dynamic_output_shape_ops = True",
    ),
    (
        r"builtin: print|print\b|logging|warnings?\.warn|reorderable_logging",
        "printing or logging: leave it out of forward, or list the function in "
        "torch._dynamo.config.reorderable_logging_functions",
    ),
    (r"torch\._dynamo\.graph_break", "somebody asked for it: remove torch._dynamo.graph_break()"),
    (
        r"torch\.compiler\.disable|torch\._dynamo\.disable|marked as skipped|skipfiles|skip_files"
        r"|in skip|trace_rules|not traceable|builtin cannot be traced|c/c\+\+|custom_op",
        "a call that Dynamo does not look into: write it in torch operations, or wrap it with "
        "torch.library.custom_op",
    ),
    (r"context manager", "a context manager that Dynamo does not know: enter it outside forward"),
    (
        r"numpy|non-tensor|backed by numpy",
        "numbers leave torch and come back: stay in torch, or wrap the function with "
        "torch.compiler.wrap_numpy",
    ),
    (r"backward|autograd|requires_grad", "gradients are asked for inside: do that outside forward"),
]
_GENERAL_BREAK = (
    "rewrite the line in plain torch operations; torch.compile(model, fullgraph=True) raises the "
    "whole reason"
)
_RECOMPILES = [
    (
        r"size mismatch|\.size\(\)|size\[|shape\[|stride|symint",
        "a size that varies: torch._dynamo.mark_dynamic(tensor, dim), torch.compile(dynamic=True), "
        "or pad to few sizes",
    ),
    (r"dtype mismatch", "the dtype varies: convert inputs to one before the call"),
    (
        r"requires_grad|dispatch key|grad_mode|inference_mode",
        "called with and without gradients: enter torch.inference_mode(), or not, the same way "
        "always",
    ),
    (r"training", "train() and eval() are two graphs: settle the mode before the first call"),
    (
        r"==|is not|len\(|type_id|obj_id",
        "a Python value that the graph was specialised on varies: pass it as a tensor, or keep it "
        "constant",
    ),
]
_GENERAL_RECOMPILE = "keep what the guard names the same between calls; see TORCH_LOGS=recompiles"
_SKIPS = [
    (
        r"cpu device|cpu tensor",
        "a tensor on the CPU takes part: create it on the GPU, or register it as a buffer",
    ),
    (r"mutat", "an input is changed in place: return the new value, or copy it before the call"),
    (r"dynamic shape", "sizes vary: CUDA graphs need static shapes, so pad to few sizes"),
    (
        r"incompatible op|non-cudagraph",
        "an operator cannot be captured: replace it, or leave mode reduce-overhead for default",
    ),
]
_GENERAL_SKIP = "the graph runs without CUDA graphs: use mode default, or mend the cause"

# Beyond this share of its time in the kernel, a call's allocator is worth a look.
KERNEL_SHARE = 0.10
# A compiled output that is this much farther from the float64 reference than eager's is worth a
# word even where it is right.
ERROR_MULTIPLE = 10.0
# A warm start below this part of the cold one makes keeping the cache worth it.
WARM_SHARE = 0.5


def sentence(rows: Sequence[Row], again: str) -> str:
    """One plain sentence: use this mode, do not compile, or cannot tell yet; and why.

    ``rows`` are one model's in one way of calling it; ``again`` says how to learn more.
    """
    compiled = [row for row in rows if row.cell.mode != EAGER]
    if not compiled:
        return "Nothing was compiled: name a mode to compare with eager, such as --mode default."
    measured = [row for row in compiled if row.outcome.ok]
    if not measured:
        outcome = compiled[0].outcome
        fault = f"{outcome.status.value}: {outcome.reason}"
        if re.match(r"while in (import|build|eager)\b", outcome.reason):
            return f"It does not run here, compiled or not: {fault}"
        return f"Do not compile it as it is: {fault}"
    ratios = {row.cell: row for row in measured}
    winners = [ratios[cell] for cell in best(measured)]
    if winners:
        first, *others = winners
        said = f"Compile it, {_name(first)}: a call takes {_interval(first.ratio)} of eager's time"
        if others:
            said += f" ({', '.join(map(_name, others))} cannot be told from it)"
        return said + _paid(first)
    verdicts = [verdict(row.ratio) for row in measured]
    if Pays.UNKNOWN in verdicts:
        row = measured[verdicts.index(Pays.UNKNOWN)]
        return (
            f"Cannot tell yet: {_name(row)} takes {_interval(row.ratio)} of eager's time; {again}"
        )
    row = min(measured, key=lambda row: row.ratio.value if row.ratio else math.inf)
    return (
        f"Do not compile it for speed: {_name(row)} takes {_interval(row.ratio)} of eager's time."
    )


def _name(row: Row) -> str:
    return f"mode {row.cell.mode}" + (f" ({row.cell.variant})" if row.cell.variant else "")


def _interval(ratio: Interval | None) -> str:
    if ratio is None:
        return "?"
    if math.isnan(ratio.low):
        return f"{ratio.value:.2f} (one launch tells no interval)"
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _paid(row: Row) -> str:
    if row.cold_compile_s is None or row.break_even_calls is None or row.latency_s is None:
        return "."
    calls = row.break_even_calls
    return (
        f"; a cold start of {row.cold_compile_s:.0f} s is paid back after {calls:,.0f} calls "
        f"({duration(calls * row.latency_s.value + row.cold_compile_s)})."
    )


def duration(seconds: float) -> str:
    """In the largest unit that leaves a number worth reading."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def advice(
    measurements: Iterable[Measurement], *, came_training: bool, varying: bool
) -> list[Advice]:
    """Everything worth mending, each thing once: the most costly kinds first.

    ``came_training`` says that its owner left the model in training mode, ``varying`` that it was
    called with several batch sizes in turns on purpose.
    """
    found: dict[Advice, None] = {}
    measured = list(measurements)
    for each in measured:
        found |= dict.fromkeys(_compiler(each, varying))
    for each in measured:
        found |= dict.fromkeys((*_accuracy(each), *_memory(each), *_cache(each)))
    if came_training and any(
        each.cell.phase == "inference" and each.outcome.ok for each in measured
    ):
        found[
            Advice(
                "the model came in training mode and was measured in eval mode without gradients",
                "",
                "call model.eval() and run it under torch.inference_mode(), as was done here",
            )
        ] = None
    return list(found)


def _compiler(measurement: Measurement, varying: bool) -> list[Advice]:
    compiled = measurement.compiled
    if compiled is None:
        return []
    found = [
        Advice(f"graph break: {each.reason}", each.where, break_remedy(each))
        for each in compiled.graph_breaks
    ]
    if not varying:
        found += [
            Advice(
                f"recompiled: {each.reason}",
                each.where,
                _remedy(each.reason, _RECOMPILES, _GENERAL_RECOMPILE),
            )
            for each in compiled.recompile_reasons
        ]
    found += [
        Advice(f"no CUDA graph: {reason}", "", _remedy(reason, _SKIPS, _GENERAL_SKIP))
        for reason in compiled.cudagraph_skips
    ]
    return found


def break_remedy(found: GraphBreak) -> str:
    """What usually mends a graph break."""
    return _remedy(found.reason, _BREAKS, _GENERAL_BREAK)


def _remedy(reason: str, known: list[tuple[str, str]], otherwise: str) -> str:
    text = reason.lower()
    return next((remedy for pattern, remedy in known if re.search(pattern, text)), otherwise)


def _accuracy(measurement: Measurement) -> list[Advice]:
    checked = next((each.accuracy for each in measurement.launches if each.accuracy), None)
    if checked is None or checked.reference != "float64":
        return []
    mode, eager = checked.mode_error, checked.eager_error
    if mode is None or eager is None or mode <= ERROR_MULTIPLE * max(eager, 1e-7):
        return []
    return [
        Advice(
            f"the compiled output is farther from float64 ({mode:.2g}) than eager's ({eager:.2g})",
            "",
            "check your own metric with the compiled model; operations were reordered or fused",
        )
    ]


def _memory(measurement: Measurement) -> list[Advice]:
    launch: Launch | None = next((each for each in measurement.launches if each.paging), None)
    if launch is None or launch.paging is None or launch.eager_paging is None:
        return []
    eager, mode = launch.eager_paging, launch.paging
    if max(eager.kernel_share, mode.kernel_share) < KERNEL_SHARE:
        return []
    return [
        Advice(
            f"the kernel takes {eager.kernel_share:.0%} of eager's processor time and "
            f"{mode.kernel_share:.0%} of the compiled call's, for {eager.faults:,.0f} and "
            f"{mode.faults:,.0f} pages a call: part of any gain is the allocator's",
            "",
            "try another allocator for both: --allocator tcmalloc (or jemalloc)",
        )
    ]


def _cache(measurement: Measurement) -> list[Advice]:
    if measurement.cell.mode == EAGER or not measurement.outcome.ok:
        return []
    costs = [statistics.compile_costs(measurement.launches, kind) for kind in ("cold", "warm")]
    if not all(costs):
        return []
    cold, warm = (math.fsum(each) / len(each) for each in costs)
    if cold < 10 or warm > WARM_SHARE * cold:
        return []
    return [
        Advice(
            f"a cold start costs {cold:.0f} s, a warm one, with the compiler's cache, {warm:.1f} s",
            "",
            "keep TORCHINDUCTOR_CACHE_DIR between runs, or ship it: "
            "torch.compiler.save_cache_artifacts() (2.6 or newer)",
        )
    ]
