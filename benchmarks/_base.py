"""What the benchmark classes share: the session, and how an outcome reaches ASV."""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite.cell import Status
from torchcompile_suite.session import open_session


class _Cells:
    """Benchmarks over cells. Every metric of a cell is a look-up but the first, which measures."""

    # Covers a cold launch and all warm ones of the slowest cell; each launch has its own limit.
    timeout = 3600
    # ASV's default is a hash of the source, so that a comment would void the history. Raise it
    # when a metric's meaning changes, and only then.
    version = "1"

    def setup_cache(self):
        """ASV runs this once for all classes: they share one session, hence one measurement."""
        return open_session()

    def _measured(self, session, workload, batch_size, mode):
        """The cell's measurement; n/a where it cannot exist, an error where it failed."""
        measurement = session.measure(session.cell(workload, batch_size, mode))
        outcome = measurement.outcome
        if outcome.status is Status.UNSUPPORTED:
            raise SkipNotImplemented(outcome.reason)
        if not outcome.ok:
            raise _Failed(f"{outcome.status.value}: {outcome.reason}")
        return measurement


class _Failed(Exception):
    """The cell has no number; the record says why."""


def _samples(values):
    """ASV's form of a value with its samples: one a launch, so its statistics see launches."""
    return {"samples": list(values), "number": 1}
