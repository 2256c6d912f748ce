"""The base class of the benchmarks: axes, and the values and outcomes for ASV."""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import METHOD, Status
from torchcompile_suite.modes import EAGER


class _Cells:
    """Benchmarks over the cells of a `matrix.Question`, with its axes.

    A metric says what ASV gets of a cell's measurement. `asv run` measures each cell once, for all
    metrics of all classes; then ``session`` has the measurements (`asv.export.Recorded`).
    """

    # Enough for all launches of the slowest cell. Each launch has its own limit.
    timeout = 3600
    # ASV's default is a hash of the source code, so a new comment would discard the history. Raise
    # this number only if the meaning of a metric changes: it is the method (`cell.METHOD`), and
    # values of two methods are not compared.
    version = str(METHOD)

    def __init_subclass__(cls, question):
        cls._question = question
        cls.param_names = list(question.axes)
        cls.params = [list(values) for values in question.axes.values()]

    def _measured(self, session, *point):
        """The measurement at a point of the axes.

        Raises SkipNotImplemented (n/a) if the cell is not supported, and _Failed if it failed.
        """
        measurement = session.measure(self._question.cell(*point))
        outcome = measurement.outcome
        if outcome.status is Status.UNSUPPORTED:
            raise SkipNotImplemented(outcome.reason)
        if not outcome.ok:
            raise _Failed(str(outcome))
        return measurement

    def _latency(self, session, *point):
        """Seconds a call in the mode, one value for each launch."""
        return self._of_launches(statistics.latency_of, session, *point)

    def _time_ratio(self, session, *point):
        """Time in the mode over time in the baseline, one value for each launch."""
        return self._of_launches(statistics.ratio_of, session, *point)

    def _of_launches(self, value, session, *point):
        """A figure of each launch that counts. The launches may be condensed."""
        return _samples(map(value, statistics.counted(self._measured(session, *point).launches)))

    def _compile_cost(self, kind, session, *point):
        """Seconds lost to calls that compiled, one value for each launch of that kind."""
        if self._question.cell(*point).mode == EAGER:
            raise SkipNotImplemented("eager compiles nothing")
        costs = statistics.compile_costs(self._measured(session, *point).launches, kind)
        if not costs:
            raise SkipNotImplemented(f"no {kind} launch was made")
        return _samples(costs)

    def _peak_memory(self, field, session, *point):
        """The field of `Launch` with the peak memory in bytes, one value for each launch that
        counts.

        Raises SkipNotImplemented (n/a) for a settled heap, which holds more by design.
        """
        launches = statistics.counted(self._measured(session, *point).launches)
        values = [getattr(one, field) for one in launches]
        if None in values:
            raise SkipNotImplemented(
                "a settled heap holds more by design: see allocator.Allocator, default-heap"
            )
        return _samples(values)

    def _page_faults(self, field, session, *point):
        """Page faults a call, one value for each launch. ``field``: of `Launch`."""
        pagings = [getattr(one, field) for one in self._measured(session, *point).launches]
        if None in pagings:
            raise SkipNotImplemented("page faults are counted on a CPU")
        return _samples(paging.faults for paging in pagings)

    def _compiled(self, field, session, *point):
        """The JSON field of the cell's `Compiled`. Raises SkipNotImplemented (n/a) with the reason
        if it is unknown.
        """
        compiled = self._measured(session, *point).compiled
        if compiled is None:
            raise SkipNotImplemented("no cold launch recorded what the compiler did")
        value = compiled.value(field)
        if value is None:
            raise SkipNotImplemented(compiled.unknown.get(field, "not reported by this release"))
        return value

    def _recaptures(self, which, session, *point):
        """One of the cell's `Compiled.recaptures`. Raises SkipNotImplemented (n/a) with the reason
        if it is unknown.
        """
        counts = self._compiled("recaptures", session, *point)
        if which not in counts:
            unknown = self._compiled("unknown", session, *point)
            raise SkipNotImplemented(unknown.get(f"recaptures.{which}", "not tried"))
        return counts[which]


class _Failed(Exception):
    """The cell has no numbers. The record has the reason."""


def _samples(values):
    """ASV's form of a value with samples. Each sample is one launch."""
    return {"samples": list(values), "number": 1}
