"""The base class of the benchmarks: axes, and the values and outcomes for ASV."""

from typing import Any

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite.analysis import statistics
from torchcompile_suite.measurement import METHOD, Status
from torchcompile_suite.modes import EAGER


class _Cells:
    """Benchmarks over the cells of a `matrix.Question`, ``question``.

    ``param_names`` and ``params`` are its axes. A metric says what ASV gets of the measurement at a
    point of them. `asv run` measures each cell once, for all metrics of all classes, and sets
    ``recorded`` (`asv.export.Recorded`).
    """

    question: Any = None
    recorded: Any = None

    # Enough for all launches of the slowest cell. Each launch has its own limit.
    timeout = 3600
    # ASV's default is a hash of the source code, so a new comment would discard the history. This
    # is the method (`measurement.METHOD`): values of two methods are not compared. Raise it only if
    # the meaning of a metric changes.
    version = str(METHOD)

    def _measured(self, *point):
        """The measurement at a point of the axes.

        Raises SkipNotImplemented (n/a) if the cell is not supported, and _Failed if it failed.
        """
        measurement = self.recorded.measure(self.question.cell(*point))
        outcome = measurement.outcome
        if outcome.status is Status.UNSUPPORTED:
            raise SkipNotImplemented(outcome.reason)
        if not outcome.ok:
            raise _Failed(str(outcome))
        return measurement

    def _latency(self, *point):
        """Seconds a call in the mode, one value for each launch."""
        return self._of_launches(statistics.latency_of, *point)

    def _time_ratio(self, *point):
        """Time in the mode over time in the baseline, one value for each launch."""
        return self._of_launches(statistics.ratio_of, *point)

    def _of_launches(self, value, *point):
        """A figure of each launch that counts. The launches may be condensed."""
        return _samples(map(value, statistics.counted(self._measured(*point).launches)))

    def _compile_cost(self, kind, *point):
        """Seconds lost to compiling, one value for each launch of that kind."""
        if self.question.cell(*point).mode == EAGER:
            raise SkipNotImplemented("eager compiles nothing")
        costs = statistics.compile_costs(self._measured(*point).launches, kind)
        if not costs:
            raise SkipNotImplemented(f"no {kind} launch was made")
        return _samples(costs)

    def _peak_memory(self, field, *point):
        """The field of `Launch` with the peak memory in bytes, one value for each launch that
        counts.

        Raises SkipNotImplemented (n/a) for a settled heap, which holds more by design.
        """
        launches = statistics.counted(self._measured(*point).launches)
        values = [getattr(one, field) for one in launches]
        if None in values:
            raise SkipNotImplemented(
                "a settled heap holds more by design: see allocator.Allocator, default-heap"
            )
        return _samples(values)

    def _page_faults(self, field, *point):
        """Page faults a call, one value for each launch. ``field``: of `Launch`."""
        pagings = [getattr(one, field) for one in self._measured(*point).launches]
        if None in pagings:
            raise SkipNotImplemented("page faults are counted on a CPU")
        return _samples(paging.faults for paging in pagings)

    def _compiled(self, field, *point):
        """The JSON field of the cell's `Compiled`. Raises SkipNotImplemented (n/a) with the reason
        if it is unknown.
        """
        compiled = self._measured(*point).compiled
        if compiled is None:
            raise SkipNotImplemented("no cold launch recorded what the compiler did")
        value = getattr(compiled, field)
        if value is None:
            raise SkipNotImplemented(compiled.unknown.get(field, "not reported by this release"))
        return value

    def _recaptures(self, which, *point):
        """One of the cell's `Compiled.recaptures`. Raises SkipNotImplemented (n/a) with the reason
        if it is unknown.
        """
        counts = self._compiled("recaptures", *point)
        if which not in counts:
            unknown = self._compiled("unknown", *point)
            raise SkipNotImplemented(unknown.get(f"recaptures.{which}", "not tried"))
        return counts[which]


class _Timed:
    """Times of steady calls: of a forward pass, a training step or a pass over a stream."""

    def track_latency(self, *point):
        """Seconds a call in the mode, in the steady state."""
        return self._latency(*point)

    track_latency.unit = "seconds"

    def track_time_ratio(self, *point):
        """Time in the mode over time in eager, in turns. Below 1: a gain."""
        return self._time_ratio(*point)

    track_time_ratio.unit = "mode/eager"


class _InEager:
    """The other side of each pair."""

    def track_eager_latency(self, *point):
        """Seconds a call in eager, in the steady state."""
        return self._of_launches(statistics.eager_latency_of, *point)

    track_eager_latency.unit = "seconds"


class _ColdCompile:
    """What a first process pays."""

    def track_cold_compile(self, *point):
        """Seconds lost to the compiler's import and to calls that compiled, with an empty cache."""
        return self._compile_cost("cold", *point)

    track_cold_compile.unit = "seconds"


class _WarmCompile:
    """What a second process pays."""

    def track_warm_compile(self, *point):
        """Seconds lost to the compiler's import and to calls that compiled, with a filled cache."""
        return self._compile_cost("warm", *point)

    track_warm_compile.unit = "seconds"


class _Memory:
    """The peak of a process that runs only the compiled model."""

    def track_peak_memory(self, *point):
        """Peak memory in bytes: resident on a CPU, and there of a default heap only (`Allocator`);
        reserved by torch on a GPU.
        """
        return self._peak_memory("peak_memory_bytes", *point)

    track_peak_memory.unit = "bytes"


class _EagerMemory:
    """The peak of a process that runs only eager."""

    def track_eager_peak_memory(self, *point):
        """Peak resident set in bytes."""
        return self._peak_memory("eager_peak_memory_bytes", *point)

    track_eager_peak_memory.unit = "bytes"


class _Failed(Exception):
    """The cell has no numbers. The record has the reason."""


def _samples(values):
    """ASV's form of a value with samples. Each sample is one launch."""
    return {"samples": list(values), "number": 1}
