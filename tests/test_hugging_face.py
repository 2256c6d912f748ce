"""Models of Hugging Face's transformers, really launched with the newest release."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchcompile_suite import matrix, workloads
from torchcompile_suite.cell import Cell
from torchcompile_suite.releases import apart
from torchcompile_suite.request import Request
from torchcompile_suite.workloads import hugging_face

from .conftest import BRIEF, ReleaseEnvironment

NAMES = [name for name in workloads.names() if workloads.get(name).family == "hf"]


def test_each_needs_transformers_and_a_bare_run_measures_none() -> None:
    """A bare run must not get longer: the families that it measures are enough."""
    assert len(NAMES) >= 24
    for name in NAMES:
        assert workloads.libraries(name) == (hugging_face.LIBRARY,)
        assert hugging_face.LIBRARY in apart.read()
    assert not {cell.workload for cell in matrix.core_cells()} & set(NAMES)
    assert {cell.workload for cell in matrix.cells_matching("Inference.*'default'")} >= set(NAMES)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("DistilBertForMaskedLM", "eager"),
        pytest.param("llama_decode_static_cache", "inductor", marks=pytest.mark.nightly),
    ],
)
def test_a_model_is_measured_with_the_library_that_lies_apart(
    newest: ReleaseEnvironment, tmp_path: Path, name: str, backend: str
) -> None:
    environment = newest.with_apart(hugging_face.LIBRARY)
    cell = Cell(name, 1, "default", backend=backend, device="cpu")
    launch = environment.launch(Request(cell, "cold", str(tmp_path / "cache"), BRIEF))
    assert launch.outcome.ok, launch.outcome
    assert launch.preloaded == [hugging_face.LIBRARY], "timm would bring another huggingface-hub"
    assert launch.environment is not None
    pin = apart.read()[hugging_face.LIBRARY].pins[0]
    assert f"transformers=={launch.environment.packages['transformers']}" == pin
    assert launch.environment.packages["timm"], "the lock is as it was"
    assert launch.compiled is not None
    assert launch.compiled.graphs == 1
    assert launch.accuracy is not None
    assert launch.accuracy.reference == "float64"
