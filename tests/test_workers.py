"""Work is divided among processes: in order, with its errors, and a lost process is one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import workers


def with_process(number: int) -> tuple[int, int]:
    return number, os.getpid()


def odd_only(number: int) -> int:
    if number % 2 == 0:
        raise ValueError(f"{number} is even")
    return number


def lost(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_the_results_are_in_the_order_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    for most in (1, 2, 8):
        found = list(workers.each(with_process, range(20), most))
        assert [number for number, _ in found] == list(range(20))
        others = {process for _, process in found} - {os.getpid()}
        assert (len(others) > 0) == (most > 1)
    assert list(workers.each(with_process, [7], 8)) == [(7, os.getpid())]
    assert list(workers.each(with_process, [], 8)) == []


@pytest.mark.parametrize("most", [1, 2])
def test_errors_reach_the_caller(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(ValueError, match="2 is even"):
        list(workers.each(odd_only, [1, 2, 3], most))


def test_a_lost_process_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(SuiteError, match="memory was full; end other programs") as error:
        list(workers.each(lost, [1, 2], 2))
    assert "\n" not in str(error.value)


def test_a_process_watches_its_parent_once_and_so_does_its_fork() -> None:
    code = """
import os, threading
from torchcompile_suite.host.orphans import die_with_parent
def count():
    return sum(one.name == "die-with-parent" for one in threading.enumerate())
die_with_parent(); die_with_parent()
print(count(), flush=True)
if os.fork() == 0:
    die_with_parent(); die_with_parent()
    print(count(), flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]
