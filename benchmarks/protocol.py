"""What would a naive timing have reported?"""

from torchcompile_suite import matrix
from torchcompile_suite.analysis import statistics

from ._base import _Cells, _samples


class Protocol(_Cells, question=matrix.PROTOCOL):
    """The same model timed rightly, and with one classic mistake at a time.

    ``warm-up-mixed``: the first ten calls, compiling included, are averaged. ``data-inside``:
    inputs are made inside the clock. ``no-sync``: the clock stops before the device is done.
    ``grad-on``: no inference mode. ``train-mode``: nor eval mode.
    """

    def track_time_ratio(self, session, workload, protocol):
        """Compiled over eager as that timing sees it."""
        if protocol != matrix.WARM_UP_MIXED:
            return self._time_ratio(session, workload, protocol)
        launches = self._measured(session, workload, protocol).launches
        return _samples(
            statistics.warm_up_mixed_ratio(launch) for launch in launches if launch.kind == "cold"
        )

    track_time_ratio.unit = "mode/eager"

    def track_cold_compile(self, session, *point):
        """Seconds lost to calls that compiled, nothing cached."""
        return self._compile_cost("cold", session, *point)

    track_cold_compile.unit = "seconds"
