"""Where does the time of a compiled call go?"""

from torchcompile_suite import matrix, workloads

from ._base import _Cells, _samples


class _Attribution(_Cells):
    """The parts of a compiled call, in seconds. They add up to the call. The record has each
    operator, each kernel and its code: ``torchcompile-suite why MODEL --history``.
    """

    def _parts(self, seconds_of, *point):
        """What ``seconds_of`` makes of the compiled call of each launch."""
        launches = self._measured(*point).launches
        return _samples(seconds_of(one.attribution.mode) for one in launches if one.attribution)

    def _steps(self, kind, *point):
        """Seconds in steps of that kind (`attribution.Step`)."""
        return self._parts(lambda mode: mode.steps_s(kind), *point)

    def _rest(self, places, *point):
        """Seconds outside of all steps, at these places (`attribution.Split`)."""
        return self._parts(lambda mode: sum(mode.rest_s[place] for place in places), *point)

    def track_generated_kernels(self, *point):
        """Seconds in generated kernels, without those that only copy."""
        return self._steps("generated", *point)

    track_generated_kernels.unit = "seconds"

    def track_libraries(self, *point):
        """Seconds in calls of libraries, such as oneDNN."""
        return self._steps("library", *point)

    track_libraries.unit = "seconds"

    def track_copies(self, *point):
        """Seconds in kernels that only bring a tensor into the layout that a library wants."""
        return self._steps("copy", *point)

    track_copies.unit = "seconds"

    def track_guards(self, *point):
        """Seconds in the check of the guards."""
        return self._rest(("guards",), *point)

    track_guards.unit = "seconds"

    def track_buffers(self, *point):
        """Seconds between the kernels of a graph, where buffers are allocated and freed."""
        return self._rest(("buffers",), *point)

    track_buffers.unit = "seconds"

    def track_around(self, *point):
        """Seconds before the first kernel of a call, between graphs, and after the last one."""
        return self._rest(("entry", "python", "exit"), *point)

    track_around.unit = "seconds"


class Attribution(_Attribution):
    """A forward pass at batch 1."""

    question = matrix.ATTRIBUTION
    param_names = ["workload", "mode"]
    params = [workloads.names(), matrix.COMPILED]


class TrainingAttribution(_Attribution):
    """A training step in float32. In the rest there is the optimizer."""

    question = matrix.TRAINING_ATTRIBUTION
    param_names = ["workload", "mode"]
    params = [workloads.tagged("training"), matrix.COMPILED]
