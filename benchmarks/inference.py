"""Does compiling pay for inference, in which mode, at what price?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import statistics, workloads
from torchcompile_suite.modes import MODES

from ._base import _Cells, _samples


class Inference(_Cells):
    """A forward pass in eval and inference mode, float32, the same input shape every call."""

    param_names = ["workload", "batch_size", "mode"]
    params = [workloads.names(), [1, 8], list(MODES)]

    def track_latency(self, session, workload, batch_size, mode):
        """Seconds a call in the mode, steady state."""
        measurement = self._measured(session, workload, batch_size, mode)
        counted = statistics.counted(measurement.launches)
        return _samples(statistics.launch_latency(launch.pairs_s) for launch in counted)

    track_latency.unit = "seconds"

    def track_time_ratio(self, session, workload, batch_size, mode):
        """Time in the mode over time in eager, interleaved in one process; below 1 is a gain."""
        measurement = self._measured(session, workload, batch_size, mode)
        counted = statistics.counted(measurement.launches)
        return _samples(statistics.launch_ratio(launch.pairs_s) for launch in counted)

    track_time_ratio.unit = "mode/eager"

    def track_cold_compile(self, session, workload, batch_size, mode):
        """Seconds lost to calls that compiled, nothing cached."""
        return self._compile_cost(session, workload, batch_size, mode, "cold")

    track_cold_compile.unit = "seconds"

    def track_warm_compile(self, session, workload, batch_size, mode):
        """Seconds lost to calls that compiled, Inductor's disk cache filled."""
        return self._compile_cost(session, workload, batch_size, mode, "warm")

    track_warm_compile.unit = "seconds"

    def _compile_cost(self, session, workload, batch_size, mode, kind):
        if not MODES[mode].compiles:
            raise SkipNotImplemented("eager compiles nothing")
        measurement = self._measured(session, workload, batch_size, mode)
        costs = statistics.compile_costs(measurement.launches, kind)
        if not costs:
            raise SkipNotImplemented(f"no {kind} launch was made")
        return _samples(costs)

    def track_peak_memory(self, session, workload, batch_size, mode):
        """Bytes held at most while running in the mode: resident on a CPU, allocated on a GPU."""
        measurement = self._measured(session, workload, batch_size, mode)
        return _samples(launch.peak_memory_bytes for launch in measurement.launches)

    track_peak_memory.unit = "bytes"
