"""Advice for a model from its recorded measurements: which mode to use, and what to change.

The texts of graph breaks, guards and CUDA graph skips are those of PyTorch 2.4 to 2.15. A text that
is not recognised gets the general remedy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..cell import TOO_BUSY, Generated, GraphBreak, Measurement, Outcome
from ..modes import EAGER
from .break_even import State, break_even
from .ends import REMEDY, Ends, both_ends
from .payoff import Payoff, best, payoff
from .statistics import Interval
from .summary import Row, mean_cost, version_key


class Advice(NamedTuple):
    """A problem: what was observed, where (``file.py:line`` or empty), and the remedy."""

    what: str
    where: str
    remedy: str


# Pattern of a reason in lower case, and what usually helps. The first match counts.
_BREAKS = [
    (
        r"\brnns?\b|\bgru\b|\blstms?\b",
        "Dynamo leaves RNNs to eager, whose kernels are fast: compile the parts around it, or set "
        "torch._dynamo.config.allow_rnn = True",
    ),
    (
        r"trace_autograd_ops|autograd\.grad\b|skip function grad",
        "forward computes gradients: set torch._dynamo.config.trace_autograd_ops = True where "
        "the release has it, or compute them outside the compiled module",
    ),
    (
        r"torch\.jit|scriptmodule",
        "a part is TorchScript: give the original module, without torch.jit.script",
    ),
    (
        r"sparse tensor",
        "Dynamo takes no sparse tensors: compile the dense parts of the model alone",
    ),
    (r"`?torch\.compiler\.disable", "the code asks for it: remove torch.compiler.disable"),
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
        r"builtin: print|`print`|print\b|logging|warnings?\.warn|reorderable_logging",
        "printing or logging: remove it from forward, or list the function in "
        "torch._dynamo.config.reorderable_logging_functions",
    ),
    (r"torch\._dynamo\.graph_break", "the code asks for it: remove torch._dynamo.graph_break()"),
    (
        r"torch\.compiler\.disable|torch\._dynamo\.disable|marked as skipped|skipfiles|skip_files"
        r"|in skip|trace_rules|not traceable|builtin cannot be traced|c/c\+\+|custom_op",
        "a call that Dynamo does not trace: write it in torch operations, or wrap it with "
        "torch.library.custom_op",
    ),
    (r"context manager", "a context manager that Dynamo does not know: enter it outside forward"),
    (
        r"numpy|non-tensor|backed by numpy",
        "the data leaves torch and comes back: stay in torch, or wrap the function with "
        "torch.compiler.wrap_numpy",
    ),
    (r"backward|autograd|requires_grad", "forward computes gradients: do that outside forward"),
]
_GENERAL_BREAK = (
    "rewrite the line in plain torch operations; torch.compile(model, fullgraph=True) raises an "
    "error with the whole reason"
)
_RECOMPILES = [
    (
        r"size mismatch|\.size\(\)|size\[|shape\[|stride|symint",
        "a size varies: use torch._dynamo.mark_dynamic(tensor, dim) or "
        "torch.compile(dynamic=True), or pad to a few sizes",
    ),
    (r"dtype mismatch", "the dtype varies: convert the inputs to one dtype before the call"),
    (
        r"requires_grad|dispatch key|grad_mode|inference_mode",
        "called with and without gradients: use torch.inference_mode() for all calls or for none",
    ),
    (r"training", "train() and eval() give two graphs: choose one before the first call"),
    (
        r"==|is not|len\(|type_id|obj_id",
        "the graph is specialised on a Python value that varies: pass it as a tensor, or keep it "
        "constant",
    ),
]
_LIMIT = re.compile(r"recompile limit|cache_size_limit|recompile_limit")
_GENERAL_RECOMPILE = "do not change what the guard names between calls; see TORCH_LOGS=recompiles"
_SKIPS = [
    (
        r"cpu device|cpu tensor",
        "the graph uses a tensor on the CPU: create it on the GPU, or register it as a buffer",
    ),
    (r"mutat", "an input is changed in place: return the new value, or copy it before the call"),
    (r"dynamic shape", "sizes vary: CUDA graphs need static shapes, so pad to a few sizes"),
    (
        r"incompatible op|non-cudagraph",
        "an operator cannot be captured: replace it, or use mode default instead",
    ),
]
_GENERAL_SKIP = "the graph runs without CUDA graphs: use mode default, or remove the cause"

# An interval whose ends differ by this factor says nothing.
MOST_SPREAD = 10.0
# From this share of a call's time on, malloc is worth a setting.
MALLOC_SHARE = 0.10
# A compiled output is reported, even a correct one, if its error against the float64 reference is
# larger than eager's by this factor.
ERROR_MULTIPLE = 10.0
# It is worth keeping the compiler's cache if a cold compile takes at least this long and a warm one
# at most this share of it.
MIN_COLD_S = 10.0
WARM_SHARE = 0.5
# Older releases ask in each process which vector instructions the CPU has, for seconds, in children
# that import torch (docs/stories/warm-start-until-2.12.md). A warm start of this length shows it.
ASKS_LESS_SINCE = version_key("2.13")
MIN_WARM_S = 3.0


def sentence(rows: Sequence[Row], again: str) -> str:
    """One sentence: use this mode, do not compile, or cannot tell yet; and the reason.

    ``rows`` are those of one model that is called in one way. ``again`` says how to measure more.
    """
    compiled = [row for row in rows if row.cell.mode != EAGER]
    if not compiled:
        return "Nothing was compiled: name a mode to compare with eager, such as --mode default."
    measured = [row for row in compiled if row.outcome.ok]
    if not measured:
        return failed(compiled[0].outcome)
    by_cell = {row.cell: row for row in measured}
    winners = [by_cell[cell] for cell in best(measured)]
    if winners:
        first, *others = winners
        text = f"Compile it, {named(first)}: a call takes {_interval(first.ratio)} of eager's time"
        if others:
            text += f" ({', '.join(map(named, others))}: no clear difference)"
        return text + _paid(first)
    if torn := [row for row in measured if row.ratio is not None and disagreement(row.ratio)]:
        factor = disagreement(torn[0].ratio) if torn[0].ratio else ""
        return f"Cannot tell, {named(torn[0])}: {factor}; {again}"
    payoffs = [payoff(row.ratio) for row in measured]
    if Payoff.UNKNOWN in payoffs:
        row = measured[payoffs.index(Payoff.UNKNOWN)]
        return (
            f"Cannot tell yet: {named(row)} takes {_interval(row.ratio)} of eager's time; {again}"
        )
    row = min(measured, key=lambda row: row.ratio.value if row.ratio else math.inf)
    return (
        f"Do not compile it for speed: {named(row)} takes {_interval(row.ratio)} of eager's time."
    )


# Who failed, by the beginning of a reason: what it means for the reader.
_WHO = [
    (rf"nothing of it was compiled|{TOO_BUSY}", ""),
    (r"the module itself fails|each call keeps", "It cannot be timed: "),
    (
        r"torch \S+ (\(.*\) )?(is a CPU-only build|finds no usable GPU|is built for)|no working C"
        r"|no CUDA toolkit|the disk is full|[\d,]+ page faults a call",
        "This machine or its torch cannot measure it: ",
    ),
    (r"the module compiles a part of itself", "Eager cannot be measured: "),
    (
        r"while in (import|build|eager)\b|the model has a Triton kernel",
        "It does not run here, compiled or not: ",
    ),
    (
        r"while in (warm-up|memory|turns)\b",
        "Do not compile it as it is: it runs in eager, and compiled it fails in a later call: ",
    ),
    (
        r"while in (prepare|reference|accuracy|observe|cases|traffic|recapture)\b",
        "This tool failed, and maybe neither the model nor the compiler; please report it with the "
        "file that --json writes: ",
    ),
    (
        r"a (cold|warm) launch took [^:]+: the (last \d+ s|end) in (import|prepare|build|eager)\b",
        "It does not end in time, before anything is compiled; give it less to do, or raise "
        "TORCHCOMPILE_SUITE_LAUNCH_LIMIT_S: ",
    ),
    (
        r"a (cold|warm) launch took [^:]+: the (last \d+ s|end) in (?!compile|native)",
        "It compiles, and what follows does not end in time; give it less to do, or raise "
        "TORCHCOMPILE_SUITE_LAUNCH_LIMIT_S: ",
    ),
    (
        r"a (cold|warm) launch took",
        "It does not end in time; compile a part of it (--question regional), such as the body of "
        "a loop that Dynamo unrolls, or raise TORCHCOMPILE_SUITE_LAUNCH_LIMIT_S: ",
    ),
    (r"killed by|exit status", "This machine or the model ended it: "),
]


def failed(outcome: Outcome) -> str:
    """One sentence on a cell without numbers: who failed, and why."""
    reason = outcome.reason
    for pattern, who in _WHO:
        if re.match(rf"(launch \d+: )?({pattern})", reason):
            return f"{who}{outcome}" if who else f"{reason[:1].upper()}{reason[1:]}"
    return f"Do not compile it as it is: {outcome}"


def in_graphs(measurement: Measurement) -> str:
    """Which share of a user's model is in graphs, in a sentence; empty if that is not known."""
    compiled = measurement.compiled
    if compiled is None or compiled.captured_share is None or not compiled.graphs:
        return ""
    graphs = "one graph" if compiled.graphs == 1 else f"{compiled.graphs} graphs"
    if compiled.captured_share == 1.0:
        return f"All of its operators are in {graphs}."
    # Not rounded up to all of them.
    return f"{math.floor(100 * compiled.captured_share)} % of its operators are in {graphs}."


def named(row: Row) -> str:
    """How the row's module was compiled, in a sentence."""
    if row.cell.way == "as-given":
        return "as your code compiles it"
    return f"mode {row.cell.mode}" + (f" ({row.cell.variant})" if row.cell.variant else "")


def disagreement(interval: Interval) -> str:
    """Why the interval is no figure; empty for one that is."""
    if not interval.known or interval.high <= MOST_SPREAD * max(interval.low, 0.0):
        return ""
    if interval.low <= interval.value / MOST_SPREAD:
        return "the launches disagree by more than a factor of 10"
    return f"the launches disagree by a factor of {interval.high / interval.low:.0f}"


def _interval(ratio: Interval | None) -> str:
    if ratio is None:
        return "?"
    return str(ratio) if ratio.known else f"{ratio} (one launch gives no interval)"


def _paid(row: Row) -> str:
    paid = break_even(row)
    if paid.state is not State.CALLS or row.cold_compile_s is None:
        return "."
    return (
        f"; a cold start of {row.cold_compile_s:.0f} s is paid back after {paid} ({paid.duration})."
    )


def advice(
    measurements: Iterable[Measurement], *, came_training: bool, varying: bool
) -> list[Advice]:
    """All advice, without repetition; the problems that cost most come first.

    ``came_training``: the model was passed in training mode. ``varying``: it was called with
    several batch sizes in turn, on purpose.
    """
    measured = list(measurements)
    items = [item for measurement in measured for item in _compiler(measurement, varying)]
    for measurement in measured:
        items += [*_accuracy(measurement), *_cache(measurement), *_asking(measurement)]
    items += [item for both in both_ends(measured) for item in _heap(both)]
    if came_training and any(
        measurement.cell.phase == "inference" and measurement.outcome.ok for measurement in measured
    ):
        # A note says so where the model needs another context.
        usual = not any(launch.notes for measurement in measured for launch in measurement.launches)
        context = " and run it under torch.inference_mode()" if usual else ""
        items.append(
            Advice(
                "the model came in training mode and was measured in eval mode"
                + (" without gradients" if usual else ""),
                "",
                f"call model.eval(){context}, as was done here",
            )
        )
    return list(dict.fromkeys(items))


def _compiler(measurement: Measurement, varying: bool) -> list[Advice]:
    compiled = measurement.compiled
    if compiled is None:
        return []
    items = _breaks(compiled.graph_breaks)
    if not varying:
        items += _recompiled(compiled.recompile_reasons)
    told = {each.reason for each in compiled.graph_breaks}
    items += [
        Advice(f"left to eager: {each.reason}", each.where, break_remedy(each))
        for each in compiled.skipped
        # What was recompiled until the limit has an advice with its guard.
        if each.reason not in told
        and not (compiled.recompile_reasons and _LIMIT.search(each.reason))
    ]
    return items + _skipped(compiled.cudagraph_skips)


def _recompiled(recompiles: Iterable[GraphBreak]) -> list[Advice]:
    """One advice for each guard that failed, however often and with whatever values."""
    causes: dict[tuple[str, str], list[str]] = {}
    for recompile in recompiles:
        reason = re.sub(r"^\d+/\d+: ", "", recompile.reason)
        reason = re.sub(r"\s+(#|HINT:).*$", "", reason)
        cause = re.sub(r"-?\d+(\.\d+)?", "#", reason)
        causes.setdefault((cause, recompile.where), []).append(reason)
    items = []
    for (_, where), reasons in causes.items():
        often = "recompiled" if len(reasons) == 1 else f"recompiled {len(reasons)} times"
        limit = "; Dynamo's limit is 8, and more run in eager" if len(reasons) > 6 else ""
        items.append(
            Advice(
                f"{often}: {reasons[0]}{limit}",
                where,
                _remedy(reasons[0], _RECOMPILES, _GENERAL_RECOMPILE),
            )
        )
    return items


def of_code(generated: Generated) -> list[Advice]:
    """Advice from code that was generated for a target, without a time."""
    return _breaks(generated.graph_breaks) + _skipped(generated.cudagraph_skips)


def _breaks(graph_breaks: Iterable[GraphBreak]) -> list[Advice]:
    return [
        Advice(f"graph break: {graph_break.reason}", graph_break.where, break_remedy(graph_break))
        for graph_break in graph_breaks
    ]


def _skipped(reasons: Iterable[str]) -> list[Advice]:
    return [
        Advice(f"no CUDA graph: {reason}", "", _remedy(reason, _SKIPS, _GENERAL_SKIP))
        for reason in reasons
    ]


def break_remedy(graph_break: GraphBreak) -> str:
    """What usually removes a graph break."""
    return _remedy(graph_break.reason, _BREAKS, _GENERAL_BREAK)


def _remedy(reason: str, known: list[tuple[str, str]], otherwise: str) -> str:
    text = reason.lower()
    return next((remedy for pattern, remedy in known if re.search(pattern, text)), otherwise)


def _accuracy(measurement: Measurement) -> list[Advice]:
    if not measurement.outcome.ok:
        return []  # the outcome says more
    checked = next((launch.accuracy for launch in measurement.launches if launch.accuracy), None)
    if checked is None or checked.reference != "float64":
        return []
    mode, eager = checked.mode_error, checked.eager_error
    if mode is None or eager is None or mode <= ERROR_MULTIPLE * max(eager, 1e-7):
        return []
    return [
        Advice(
            f"the compiled output has a larger error against float64 ({mode:.2g}) than eager's "
            f"({eager:.2g})",
            "",
            "check your own metric with the compiled model: the compiler reorders and fuses "
            "operations",
        )
    ]


def _heap(both: Ends) -> list[Advice]:
    share = max(both.eager_share, both.mode_share)
    if share < MALLOC_SHARE:
        return []
    return [
        Advice(
            f"malloc takes {both.eager_share:.0%} of eager's time and {both.mode_share:.0%} of the "
            "compiled call's, if the process does nothing else: it gives large blocks back to the "
            "kernel at each call",
            "",
            f"start Python with {REMEDY}, or with tcmalloc in LD_PRELOAD; to measure "
            "tcmalloc: --allocator tcmalloc",
        )
    ]


def _cache(measurement: Measurement) -> list[Advice]:
    if measurement.cell.mode == EAGER or not measurement.outcome.ok:
        return []
    if measurement.cell.way == "as-given":
        return []  # the same is said of the mode
    cold, warm = (mean_cost(measurement, kind) for kind in ("cold", "warm"))
    if cold is None or warm is None or cold < MIN_COLD_S or warm > WARM_SHARE * cold:
        return []
    remedy = "keep TORCHINDUCTOR_CACHE_DIR between runs"
    # For a CPU a carried cache has the source of the C++ and no machine code: it is compiled again,
    # and the cold start of gpt_decode was a tenth shorter on two machines (benchmarks/starts.py).
    if measurement.cell.device != "cpu":
        remedy += ", or deploy the cache: torch.compiler.save_cache_artifacts() (2.7 or newer)"
    return [
        Advice(
            f"a cold start costs {cold:.0f} s; a warm start, with the compiler's cache, "
            f"{warm:.1f} s",
            "",
            remedy,
        )
    ]


def _asking(measurement: Measurement) -> list[Advice]:
    warm = mean_cost(measurement, "warm")
    if measurement.cell.device != "cpu" or measurement.cell.mode == EAGER or not warm:
        return []
    releases = {launch.environment.torch for launch in measurement.launches if launch.environment}
    if warm < MIN_WARM_S or not releases or max(map(version_key, releases)) >= ASKS_LESS_SINCE:
        return []
    return [
        Advice(
            f"a warm start takes {warm:.1f} s: this release asks in each process which vector "
            "instructions the CPU has",
            "",
            "use PyTorch 2.13 or newer; before, TORCHINDUCTOR_VEC_ISA_OK=1 leaves out a part, if "
            "the C++ compiler knows all instructions of the CPU",
        )
    ]
