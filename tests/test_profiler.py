"""Busy and idle time of an accelerator, from spans that may overlap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcompile_suite.launch.inspect import profiler

spans = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(1, 100)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=30,
)


def test_gaps_between_kernels() -> None:
    profile = profiler.summary([(0.0, 1.0), (3.0, 4.0), (4.0, 6.0), (5.0, 5.5)], 7, 2)
    assert (profile.busy_s, profile.idle_s, profile.largest_gap_s) == (4.0, 2.0, 2.0)
    assert (profile.kernel_launches, profile.kernels, profile.calls) == (7, 4, 2)


@given(spans)
def test_busy_and_idle_make_the_whole(given: list[tuple[int, int]]) -> None:
    profile = profiler.summary(given, 0, 1)
    covered = {tick for start, end in given for tick in range(start, end)}
    assert profile.busy_s == len(covered)
    if given:
        whole = max(end for _, end in given) - min(start for start, _ in given)
        assert profile.busy_s + profile.idle_s == pytest.approx(whole)
    assert profile.largest_gap_s <= profile.idle_s


@given(spans, st.randoms())
def test_their_order_does_not_matter(given: list[tuple[int, int]], random: object) -> None:
    mixed = list(given)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert profiler.summary(mixed, 0, 1) == profiler.summary(given, 0, 1)


def test_what_starts_work_on_a_device_with_cuda_and_rocm() -> None:
    for name in (
        *("cudaLaunchKernel", "cudaLaunchKernelExC_v11060", "cuLaunchKernelEx", "cudaGraphLaunch"),
        *("cudaLaunchCooperativeKernel", "hipLaunchKernel", "hipModuleLaunchKernel"),
        *("hipExtModuleLaunchKernel", "hipExtLaunchKernel", "hipGraphLaunch"),
    ):
        assert profiler.launches(name), name
    for name in ("cudaDeviceSynchronize", "cudaMemcpyAsync", "hipStreamSynchronize", "aten::mm"):
        assert not profiler.launches(name), name
