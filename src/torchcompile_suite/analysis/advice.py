"""Advice for a model from its recorded measurements: which mode to use, and what to change.

The texts of graph breaks, guards and CUDA graph skips are those of PyTorch 2.4 to 2.15. A text that
is not recognised gets the general remedy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..cell import Cell
from ..compiled import GraphBreak
from ..generated import Generated
from ..measurement import CALLED_UNDER, Measurement, Outcome, Status
from ..modes import EAGER, GRAPH_MODES
from .ends import REMEDY, Ends, both_ends
from .payoff import Payoff, State, best, break_even, payoff
from .remedies import guard_of, remedy, texts
from .statistics import Interval
from .summary import Row, mean_cost, version_key

# The numbers of a guard that are values: not those of a name, a subscript or a dimension.
_VALUE = re.compile(
    r"(\bindex \d+|[A-Za-z_]\w*|(?<=[\w)\]])\[[^][]*\])|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
)
_LIMIT = re.compile(r"recompile limit|cache_size_limit|recompile_limit")
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


class Advice(Struct, frozen=True):
    """A problem: what was observed, where (``file.py:line`` or empty), and the remedy."""

    what: str
    where: str
    remedy: str


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
    winners = [by_cell[cell] for cell in best(measured, gains=False)]
    if winners:
        first, *others = winners
        text = f"Compile it, {named(first.cell)}: a call {_takes(first)}"
        if others:
            text += f" ({', '.join(named(row.cell) for row in others)}: no clear difference)"
        return text + _paid(first)
    for row in measured:
        if row.ratio is not None and (torn := disagreement(row.ratio)):
            return f"Cannot tell, {named(row.cell)}: {torn}; {again}"
    for row in measured:
        if payoff(row.ratio) is Payoff.UNKNOWN:
            if row.ratio is None or math.isnan(row.ratio.value):
                return f"Cannot tell yet: no launch of {named(row.cell)} counts; {again}"
            return f"Cannot tell yet: {named(row.cell)} {_takes(row)}; {again}"
    row = min(measured, key=lambda row: row.ratio.value if row.ratio else math.inf)
    text = f"Do not compile it for speed: {named(row.cell)} {_takes(row)}."
    plain = all(one.cell.backend == "inductor" and one.cell.way == "whole" for one in compiled)
    graphs = any(one.cell.mode in GRAPH_MODES for one in compiled)
    if row.cell.device == "cuda" and plain and not graphs:
        # Where calls are small, CUDA graphs decide.
        text += " Mode reduce-overhead, which has CUDA graphs, was not measured."
    return text


def failed(outcome: Outcome) -> str:
    """One sentence on a cell without numbers: who failed, and why."""
    reason = outcome.reason
    who, known = next(
        (text.says, text.reason)
        for text in texts()["failed"]
        if re.match(rf"(launch \d+: )?({text.reason})", reason)
    )
    if outcome.status is Status.UNSUPPORTED and not known:
        who = "It cannot be measured so: "
    return f"{who}{outcome}" if who else f"{reason[:1].upper()}{reason[1:]}"


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


def named(cell: Cell) -> str:
    """How the cell's module was compiled, in a sentence."""
    if cell.way == "as-given":
        return "as your code compiles it"
    return f"mode {cell.mode}" + (f" ({cell.variant})" if cell.variant else "")


def disagreement(interval: Interval) -> str:
    """Why the interval is no figure; empty for one that is."""
    if not interval.known or interval.high <= MOST_SPREAD * max(interval.low, 0.0):
        return ""
    factor = interval.high / interval.low if interval.low > 0 else math.inf
    text = f"{factor:.0f}" if factor < MOST_SPREAD**2 else f"more than {MOST_SPREAD**2:.0f}"
    return f"too few launches agree: the interval spans a factor of {text}"


def _takes(row: Row) -> str:
    ratio = "?" if row.ratio is None else str(row.ratio)
    unsure = row.ratio is not None and not row.ratio.known
    return f"takes {ratio}{' (one launch gives no interval)' if unsure else ''} of eager's time"


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
        notes = [note for one in measured for launch in one.launches for note in launch.notes]
        usual = not any(note.startswith(CALLED_UNDER) for note in notes)
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
        Advice(f"left to eager: {each.reason}", each.where, remedy("graph-break", each.reason))
        for each in compiled.skipped
        # What was recompiled until the limit has an advice with its guard.
        if each.reason not in told
        and not (compiled.recompile_reasons and _LIMIT.search(each.reason))
    ]
    return items + _skipped(compiled.cudagraph_skips)


def _recompiled(recompiles: Iterable[GraphBreak]) -> Iterator[Advice]:
    """One advice for each guard that failed, however often and with whatever values."""
    causes: dict[tuple[str, str], list[str]] = {}
    for recompile in recompiles:
        reason = guard_of(recompile.reason)
        cause = _VALUE.sub(lambda found: found[1] or "#", reason)
        causes.setdefault((cause, recompile.where), []).append(reason)
    for (_, where), reasons in causes.items():
        often = "recompiled" if len(reasons) == 1 else f"recompiled {len(reasons)} times"
        limit = "; Dynamo's limit is 8, and more run in eager" if len(reasons) > 6 else ""
        helps = remedy("recompile", reasons[0])
        yield Advice(f"{often}: {reasons[0]}{limit}", where, helps)


def of_code(generated: Generated) -> list[Advice]:
    """Advice from code that was generated for a target, without a time."""
    return _breaks(generated.graph_breaks) + _skipped(generated.cudagraph_skips)


def _breaks(graph_breaks: Iterable[GraphBreak]) -> list[Advice]:
    return [
        Advice(f"graph break: {each.reason}", each.where, remedy("graph-break", each.reason))
        for each in graph_breaks
    ]


def _skipped(reasons: Iterable[str]) -> list[Advice]:
    return [
        Advice(f"no CUDA graph: {reason}", "", remedy("cuda-graph", reason)) for reason in reasons
    ]


def _accuracy(measurement: Measurement) -> Iterator[Advice]:
    checked = next((launch.accuracy for launch in measurement.launches if launch.accuracy), None)
    # Of a failed cell the outcome says more.
    if not measurement.outcome.ok or checked is None or checked.reference != "float64":
        return
    mode, eager = checked.mode_error, checked.eager_error
    if mode is None or eager is None or mode <= ERROR_MULTIPLE * max(eager, 1e-7):
        return
    yield Advice(
        f"the compiled output has a larger error against float64 ({mode:.2g}) than eager's "
        f"({eager:.2g})",
        "",
        "check your own metric with the compiled model: the compiler reorders and fuses operations",
    )


def _heap(both: Ends) -> Iterator[Advice]:
    shares = {"eager's time": both.eager_share, "the compiled call's": both.mode_share}
    if max(share or 0.0 for share in shares.values()) >= MALLOC_SHARE:
        known = [f"{share:.0%} of {whose}" for whose, share in shares.items() if share is not None]
        yield Advice(
            f"malloc takes {' and '.join(known)}, if the process does nothing else: it gives "
            "large blocks back to the kernel at each call",
            "",
            f"start Python with {REMEDY}, or with tcmalloc in LD_PRELOAD; to measure "
            "tcmalloc: --allocator tcmalloc",
        )


def _cache(measurement: Measurement) -> Iterator[Advice]:
    cell = measurement.cell
    # Of a model compiled as given, the same is said of the mode.
    if cell.mode == EAGER or cell.way == "as-given" or not measurement.outcome.ok:
        return
    cold, warm = (mean_cost(measurement, kind) for kind in ("cold", "warm"))
    if cold is None or warm is None or cold < MIN_COLD_S or warm > WARM_SHARE * cold:
        return
    remedy = "keep TORCHINDUCTOR_CACHE_DIR between runs"
    # For a CPU a carried cache has the source of the C++ and no machine code: it is compiled again,
    # and the cold start of gpt_decode was a tenth shorter on two machines (benchmarks/starts.py).
    if cell.device != "cpu":
        remedy += ", or deploy the cache: torch.compiler.save_cache_artifacts() (2.7 or newer)"
    yield Advice(
        f"a cold start costs {cold:.0f} s; a warm start, with the compiler's cache, {warm:.1f} s",
        "",
        remedy,
    )


def _asking(measurement: Measurement) -> Iterator[Advice]:
    cell = measurement.cell
    # The launch that failed has no times.
    if cell.device != "cpu" or cell.mode == EAGER or not measurement.outcome.ok:
        return
    warm = mean_cost(measurement, "warm") or 0.0
    releases = {launch.environment.torch for launch in measurement.launches if launch.environment}
    if warm >= MIN_WARM_S and releases and max(map(version_key, releases)) < ASKS_LESS_SINCE:
        yield Advice(
            f"a warm start takes {warm:.1f} s: this release asks in each process which vector "
            "instructions the CPU has",
            "",
            "use PyTorch 2.13 or newer; with 2.7 to 2.12, TORCHINDUCTOR_VEC_ISA_OK=1 leaves out a "
            "part, if the C++ compiler knows all instructions of the CPU (before 2.7: "
            "torch._inductor.config.cpp.vec_isa_ok = True)",
        )
