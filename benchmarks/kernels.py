"""What did the compiler make of it: kernels, fusion, traffic, and on a GPU the time line."""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix

from ._base import _Cells


class Kernels(_Cells, question=matrix.KERNELS):
    """The inference cells at batch 1, as Inductor's scheduler and the profiler see them."""

    def track_kernels(self, session, *point):
        """Kernels that Inductor generated."""
        return self._compiled("kernels", session, *point)

    track_kernels.unit = "kernels"

    def track_launches(self, session, *point):
        """Kernels started by one call, library calls included."""
        return self._compiled("launches", session, *point)

    track_launches.unit = "launches"

    def track_nodes_before_fusion(self, session, *point):
        """Operations that the scheduler was given."""
        return self._compiled("nodes_before", session, *point)

    track_nodes_before_fusion.unit = "nodes"

    def track_nodes_after_fusion(self, session, *point):
        """Operations left when it had fused them."""
        return self._compiled("nodes_after", session, *point)

    track_nodes_after_fusion.unit = "nodes"

    def track_bytes_before_fusion(self, session, *point):
        """Bytes a call would read and write if nothing were fused, as the scheduler counts."""
        return self._compiled("bytes_before", session, *point)

    track_bytes_before_fusion.unit = "bytes"

    def track_bytes_after_fusion(self, session, *point):
        """Bytes a call reads and writes, as the scheduler counts."""
        return self._compiled("bytes_after", session, *point)

    track_bytes_after_fusion.unit = "bytes"

    def track_eager_bytes(self, session, *point):
        """Bytes the same call reads and writes in eager, as the dispatcher sees it."""
        return self._compiled("eager_bytes", session, *point)

    track_eager_bytes.unit = "bytes"

    def track_device_launches(self, session, *point):
        """What the host starts in one call: kernels, or whole CUDA graphs."""
        profile = self._compiled("profile", session, *point)
        return profile.kernel_launches / profile.calls

    track_device_launches.unit = "launches"

    def track_busy(self, session, *point):
        """Seconds a call in which the device works."""
        profile = self._compiled("profile", session, *point)
        return profile.busy_s / profile.calls

    track_busy.unit = "seconds"

    def track_idle(self, session, *point):
        """Seconds a call in which it waits for the host."""
        profile = self._compiled("profile", session, *point)
        return profile.idle_s / profile.calls

    track_idle.unit = "seconds"

    def track_largest_gap(self, session, *point):
        """Seconds of the longest such wait."""
        return self._compiled("profile", session, *point).largest_gap_s

    track_largest_gap.unit = "seconds"

    def track_idle_share(self, session, *point):
        """Share of the time in which the device waits: 1 minus its utilisation."""
        profile = self._compiled("profile", session, *point)
        return profile.idle_s / (profile.busy_s + profile.idle_s)

    track_idle_share.unit = "share"

    def track_seconds_a_gigabyte(self, session, *point):
        """Busy seconds for each 10^9 bytes moved: the inverse of the achieved bandwidth."""
        profile = self._compiled("profile", session, *point)
        moved = self._compiled("bytes_after", session, *point)
        if not moved:
            raise SkipNotImplemented("no bytes were counted")
        return profile.busy_s / profile.calls / (moved / 1e9)

    track_seconds_a_gigabyte.unit = "seconds/GB"
