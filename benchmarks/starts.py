"""How does a service start fastest: from the start of its process to its first result?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix, workloads
from torchcompile_suite.analysis import statistics

from ._base import _Cells, _samples


class ColdStart(_Cells):
    """Inference at batch 1. ``start``: what the process finds. Each pair is two new processes."""

    question = matrix.COLD_START
    param_names = ["workload", "start"]
    params = [workloads.tagged("starts"), matrix.STARTS]

    def track_first_result(self, *point):
        """Seconds from the start of a compiled process to its first result."""
        return self._latency(*point)

    track_first_result.unit = "seconds"

    def track_eager_first_result(self, *point):
        """Seconds from the start of an eager process to its first result."""
        return self._of_launches(statistics.eager_latency_of, *point)

    track_eager_first_result.unit = "seconds"

    def track_time_ratio(self, *point):
        """Compiled over eager, to the first result. Below 1: the compiled service starts faster."""
        return self._time_ratio(*point)

    track_time_ratio.unit = "mode/eager"

    def track_artefact_bytes(self, *point):
        """Bytes of what the process finds. A package contains the weights."""
        found = self._started(*point)[0].artefact_bytes
        if found is None:
            raise SkipNotImplemented("the process finds nothing")
        return found

    track_artefact_bytes.unit = "bytes"

    def track_imports(self, *point):
        """Seconds until torch and the model's library are imported."""
        return self._phases(("interpreter", "imports"), *point)

    track_imports.unit = "seconds"

    def track_model(self, *point):
        """Seconds to build the model and to load its weights and the first request."""
        return self._phases(("model", "weights and inputs"), *point)

    track_model.unit = "seconds"

    def track_loading(self, *point):
        """Seconds to load what was found, and to import the compiler if it is needed."""
        return self._phases(("artefacts", "compiler"), *point)

    track_loading.unit = "seconds"

    def track_first_call(self, *point):
        """Seconds of the first call, which compiles what is not there yet."""
        return self._phases(("first call",), *point)

    track_first_call.unit = "seconds"

    def _started(self, *point):
        launches = statistics.counted(self._measured(*point).launches)
        return [launch.start for launch in launches if launch.start is not None]

    def _phases(self, names, *point):
        """The sum of some phases of the compiled processes, one value for each launch."""
        return _samples(
            sum(started.phases_s.get(name, 0.0) for name in names)
            for started in self._started(*point)
        )
