"""What would a naive timing report?"""

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import statistics

from ._base import _Cells, _ColdCompile, _samples


class Protocol(_ColdCompile, _Cells):
    """The same model, timed correctly and with one of the classic mistakes.

    ``warm-up-mixed``: the mean of the first ten calls, compiling included. ``data-inside``: the
    clock includes the creation of the inputs. ``no-sync``: the clock stops before the device has
    finished. ``grad-on``: without inference mode. ``train-mode``: without inference and eval mode.
    """

    question = matrix.PROTOCOL
    param_names = ["workload", "protocol"]
    params = [workloads.tagged("protocol"), matrix.PROTOCOLS]

    def track_time_ratio(self, workload, protocol):
        """Compiled time over eager time, as this timing reports it."""
        if protocol != matrix.WARM_UP_MIXED:
            return self._time_ratio(workload, protocol)
        launches = self._measured(workload, protocol).launches
        return _samples(
            statistics.warm_up_mixed_ratio(launch) for launch in launches if launch.kind == "cold"
        )

    track_time_ratio.unit = "mode/eager"
