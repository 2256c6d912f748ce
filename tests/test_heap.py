"""A settled heap: set from inside a process, and with the environment variables that we advise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from torchcompile_suite.analysis.ends import REMEDY, both_ends, sentences
from torchcompile_suite.host import heap
from torchcompile_suite.presentation import sheets

from . import examples
from .conftest import ReleaseEnvironment
from .examples import twin

# Blocks of 48 MiB are above the largest threshold of glibc (32 MiB), so its defaults give every one
# of them back.
FAULTS = """
import resource, sys
if "settle" in sys.argv:
    from torchcompile_suite.host import heap
    reason = heap.settle()
    assert not reason, reason
import torch
x = torch.randn(12 << 20)
faults = []
for _ in range(20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    (x * 2 + 1).relu()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(faults)[10])
"""


TOUCHED = """
import ctypes, resource, sys
from torchcompile_suite.host import heap
assert not heap.settle()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.malloc(1 << 20)  # from here on there is a reserve
if "touch" in sys.argv:
    heap.touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
block = libc.malloc(32 << 20)
ctypes.memset(block, 1, 32 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(heap.held() is None, reason="the C library has no mallinfo2")
def test_a_touched_reserve_makes_no_page_faults() -> None:
    def faults(*arguments: str) -> int:
        command = [sys.executable, "-c", TOUCHED, *arguments]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    # 8192 pages, or fewer large ones.
    assert faults() > 10
    assert faults("touch") <= 1


def test_malloc_has_a_share_where_the_default_heap_is_slower() -> None:
    (both,) = both_ends(
        [twin("settled", 0.02, 0.017, (0, 0)), twin("default", 0.02, 0.0272, (0, 4870))]
    )
    assert both.eager_share == 0
    assert both.mode_share == pytest.approx(0.375)
    first, second = sentences(both, "compiled")
    assert first.startswith("Alone, with the C library's defaults, compiled takes 1.36")
    assert "4,870 compiled" in first
    assert second.startswith(f"With {REMEDY} it takes 0.85")
    assert second.endswith("Malloc's share is 37% of compiled's time.")


def test_intervals_that_overlap_do_not_decide_about_mallocs_share() -> None:
    settled, default = (twin(heap, 0.02, 0.017, (0, 4870)) for heap in ("settled", "default"))
    slow = [
        msgspec.structs.replace(one, pairs_s=[(0.02, 0.017 * factor)] * 2)
        for one, factor in zip(default.launches, (1.0, 1.9, 1.1), strict=False)
    ]
    (both,) = both_ends([settled, msgspec.structs.replace(default, launches=slow)])
    assert both.mode_share is None
    assert sheets.ends([both]).lines[0][-1] == "cannot tell"
    (only,) = sentences(both, "compiled")
    assert only.endswith("what the state of the heap costs cannot be told from these launches.")


@pytest.mark.parametrize(
    ("factors", "share"),
    [
        # The estimate is 1 %, and the interval does not rule out a third.
        ((1.0, 1.3, 0.8), None),
        ((1.0, 1.001, 0.999), 0.0),
        # One launch has no interval.
        ((1.0,), None),
    ],
)
def test_a_share_is_none_at_all_only_if_it_is_surely_small(
    factors: tuple[float, ...], share: float | None
) -> None:
    settled, default = (
        msgspec.structs.replace(
            made,
            launches=[
                msgspec.structs.replace(one, pairs_s=[(0.02, 0.017 * factor)] * 2)
                for one, factor in zip(made.launches, of, strict=False)
            ],
        )
        for made, of in (
            (twin("settled", 0.02, 0.017, (0, 0)), (1.0, 1.001, 0.999)),
            (twin("default", 0.02, 0.017, (0, 4870)), factors),
        )
    )
    (both,) = both_ends([settled, default])
    assert both.mode_share == share
    (only,) = sentences(both, "compiled")
    told = "cannot be told from these launches" if share is None else "here is below 5%"
    assert only.endswith(f"what the state of the heap costs {told}.")


def test_a_machine_that_became_slower_is_no_part_of_mallocs_share() -> None:
    """Eager makes no page faults, and takes longer when the default heap is measured."""
    (both,) = both_ends(
        [twin("settled", 0.02, 0.016, (0, 0)), twin("default", 0.025, 0.04, (0, 4870))]
    )
    assert both.mode_share == pytest.approx(0.5)
    # Where eager makes some, too, only the calibration loop could tell.
    (both,) = both_ends(
        [twin("settled", 0.02, 0.016, (0, 0)), twin("default", 0.025, 0.04, (500, 4870))]
    )
    assert both.mode_share == pytest.approx(0.6)


def test_a_heap_that_makes_no_difference_takes_one_sentence() -> None:
    same = [twin(state, 0.02, 0.01, (0, 0)) for state in ("settled", "default")]
    (both,) = both_ends(same)
    (only,) = sentences(both, "compiled")
    assert only.endswith("the state of the heap costs neither side any time here.")


def test_one_end_or_an_older_method_makes_no_ends() -> None:
    settled, default = (twin(state, 0.02, 0.01, (0, 0)) for state in ("settled", "default"))
    assert both_ends([settled]) == []
    assert both_ends([default]) == []
    assert both_ends([examples.measurement("m"), default]) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_remedy_and_the_suite_settle_the_heap(newest: ReleaseEnvironment) -> None:
    """Both are counted beside a process with malloc's defaults, which has page faults."""

    def faults(*arguments: str, **variables: str) -> int:
        return int(newest.answer(FAULTS, *arguments, env=newest.variables(**variables)))

    assert faults() > 1000
    assert faults(**heap.VARIABLES) <= 8
    assert faults("settle") <= 8


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_another_malloc_is_not_told(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    """A library with the name of an allocator stands for one that is installed."""
    fake = tmp_path / "libjemalloc.so.2"
    fake.write_bytes(Path("/lib/x86_64-linux-gnu/libm.so.6").read_bytes())
    code = "from torchcompile_suite.host import heap; print(heap.settle())"
    done = newest.run("-c", code, env=newest.variables(LD_PRELOAD=str(fake)))
    assert done.stdout.startswith("jemalloc is loaded")
