"""What the benchmark classes share: their axes, the session, and how an outcome reaches ASV."""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite.analysis import statistics
from torchcompile_suite.cell import Status
from torchcompile_suite.measuring.session import open_session
from torchcompile_suite.modes import EAGER


class _Cells:
    """Benchmarks over the cells of a `matrix.Question`, whose axes they take.

    Every metric of a cell is a look-up but the first to be asked, which measures; so is every
    metric of another class that asks about the same cell.
    """

    # Covers a cold launch and all warm ones of the slowest cell; each launch has its own limit.
    timeout = 3600
    # ASV's default is a hash of the source, so that a comment would void the history. Raise it
    # when a metric's meaning changes, and only then. 2: eager and the mode take turns
    # (`cell.METHOD`), and a launch begins without libraries that its workload does not need.
    version = "2"

    def __init_subclass__(cls, question):
        cls._question = question
        cls.param_names = list(question.axes)
        cls.params = [list(values) for values in question.axes.values()]

    def setup_cache(self):
        """ASV runs this once for all classes: they share one session, hence one measurement."""
        return open_session()

    def _measured(self, session, *point):
        """The measurement at a point of the axes; n/a where the cell cannot exist, an error where
        it failed.
        """
        measurement = session.measure(self._question.cell(*point))
        outcome = measurement.outcome
        if outcome.status is Status.UNSUPPORTED:
            raise SkipNotImplemented(outcome.reason)
        if not outcome.ok:
            raise _Failed(f"{outcome.status.value}: {outcome.reason}")
        return measurement

    def _latency(self, session, *point):
        """Seconds a call in the mode, one a launch."""
        return self._of_pairs(statistics.launch_latency, session, *point)

    def _time_ratio(self, session, *point):
        """Time in the mode over the baseline's, one a launch."""
        return self._of_pairs(statistics.launch_ratio, session, *point)

    def _of_pairs(self, value, session, *point):
        launches = statistics.counted(self._measured(session, *point).launches)
        return _samples(value(launch.pairs_s) for launch in launches)

    def _compile_cost(self, kind, session, *point):
        """Seconds lost to calls that compiled, one a launch of that kind."""
        if self._question.cell(*point).mode == EAGER:
            raise SkipNotImplemented("eager compiles nothing")
        costs = statistics.compile_costs(self._measured(session, *point).launches, kind)
        if not costs:
            raise SkipNotImplemented(f"no {kind} launch was made")
        return _samples(costs)

    def _peak_memory(self, session, *point):
        """Bytes held at most while running, one a launch."""
        launches = self._measured(session, *point).launches
        return _samples(launch.peak_memory_bytes for launch in launches)

    def _compiled(self, field, session, *point):
        """A field of what the compiler saw and made; n/a, with the reason, where it is unknown."""
        compiled = self._measured(session, *point).compiled
        if compiled is None:
            raise SkipNotImplemented("no cold launch was made that tells")
        value = compiled.value(field)
        if value is None:
            raise SkipNotImplemented(compiled.unknown.get(field, "not told by this release"))
        return value


class _Failed(Exception):
    """The cell has no number; the record says why."""


def _samples(values):
    """ASV's form of a value with its samples: one a launch, so its statistics see launches."""
    return {"samples": list(values), "number": 1}
