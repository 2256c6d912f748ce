"""What does the compiler generate: kernels, fusion, memory traffic, and a GPU's time line?"""

from asv_runner.benchmarks.mark import SkipNotImplemented

from torchcompile_suite import matrix, workloads

from ._base import _Cells


class Kernels(_Cells):
    """The inference cells at batch 1, as Inductor's scheduler and the profiler count them."""

    question = matrix.KERNELS
    param_names = ["workload", "mode"]
    params = [workloads.names(), matrix.COMPILED]

    def track_kernels(self, *point):
        """Kernels that Inductor generated."""
        return self._compiled("kernels", *point)

    track_kernels.unit = "kernels"

    def track_launches(self, *point):
        """Kernel launches of one call, library calls included."""
        return self._compiled("launches", *point)

    track_launches.unit = "launches"

    def track_nodes_before_fusion(self, *point):
        """The scheduler's nodes before fusion."""
        return self._compiled("nodes_before", *point)

    track_nodes_before_fusion.unit = "nodes"

    def track_nodes_after_fusion(self, *point):
        """The scheduler's nodes after fusion."""
        return self._compiled("nodes_after", *point)

    track_nodes_after_fusion.unit = "nodes"

    def track_bytes_before_fusion(self, *point):
        """Bytes that a call would read and write without fusion, as the scheduler counts them."""
        return self._compiled("bytes_before", *point)

    track_bytes_before_fusion.unit = "bytes"

    def track_bytes_after_fusion(self, *point):
        """Bytes that a call reads and writes after fusion, as the scheduler counts them."""
        return self._compiled("bytes_after", *point)

    track_bytes_after_fusion.unit = "bytes"

    def track_eager_bytes(self, *point):
        """Bytes that the same call reads and writes in eager, as the dispatcher counts them."""
        return self._compiled("eager_bytes", *point)

    track_eager_bytes.unit = "bytes"

    def track_device_launches(self, *point):
        """Launches by the host in one call: of kernels, or of whole CUDA graphs."""
        profile = self._compiled("profile", *point)
        return profile.kernel_launches / profile.calls

    track_device_launches.unit = "launches"

    def track_busy(self, *point):
        """Seconds a call in which the device is busy."""
        profile = self._compiled("profile", *point)
        return profile.busy_s / profile.calls

    track_busy.unit = "seconds"

    def track_idle(self, *point):
        """Seconds a call in which the device waits for the host."""
        profile = self._compiled("profile", *point)
        return profile.idle_s / profile.calls

    track_idle.unit = "seconds"

    def track_largest_gap(self, *point):
        """Seconds of the longest time in which the device waits for the host."""
        return self._compiled("profile", *point).largest_gap_s

    track_largest_gap.unit = "seconds"

    def track_idle_share(self, *point):
        """Share of the time in which the device waits: 1 minus the utilisation."""
        profile = self._compiled("profile", *point)
        return profile.idle_s / (profile.busy_s + profile.idle_s)

    track_idle_share.unit = "share"

    def track_seconds_a_gigabyte(self, *point):
        """Busy seconds for 10^9 bytes read and written: the inverse of the bandwidth."""
        profile = self._compiled("profile", *point)
        moved = self._compiled("bytes_after", *point)
        if not moved:
            raise SkipNotImplemented("no bytes were counted")
        return profile.busy_s / profile.calls / (moved / 1e9)

    track_seconds_a_gigabyte.unit = "seconds/GB"
