"""A run does not begin where its device is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchcompile_suite.errors import SuiteError
from torchcompile_suite.host import cuda, machine


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (cuda.Seen(), "CUDA sees no GPU"),
        (cuda.Seen((), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 12000), "DRIVER_MISMATCH"),
        (cuda.Seen((cuda.Gpu("u", "H100"),), "", 13000), ""),
    ],
)
def test_a_gpu_that_cannot_be_used_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seen: cuda.Seen, words: str
) -> None:
    monkeypatch.setattr(cuda, "seen", lambda: seen)
    monkeypatch.setattr(machine, "_ROCM", tmp_path / "kfd")
    machine.need("cpu")
    if not words:
        machine.need("cuda")
        return
    with pytest.raises(SuiteError, match=words) as refused:
        machine.need("cuda")
    assert len(str(refused.value).splitlines()) == 1
    (tmp_path / "kfd").touch()
    machine.need("cuda")  # only torch knows AMD's GPUs
