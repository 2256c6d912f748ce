"""Precision and layout of a cell: what the module, its inputs and its outputs are in."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from torchcompile_suite import matrix
from torchcompile_suite.cell import WEIGHTS, Cell
from torchcompile_suite.cli.app import app
from torchcompile_suite.request import Request

from .conftest import BRIEF, ReleaseEnvironment

# Builds the cell, and prints what its weights, inputs and outputs are.
BUILD = """
import sys, json, msgspec, torch
from torchcompile_suite.cell import Cell
from torchcompile_suite.launch import build, failures
said = []
for line in sys.stdin:
    cell = msgspec.json.decode(line, type=Cell)
    try:
        built = build.build(cell)
    except failures.Unsupported as error:
        said.append(str(error))
        continue
    with built.context():
        output = built.eager()
    last = torch.channels_last
    weight = next(w for w in built.module.parameters() if w.dim() == 4)
    (image,) = built.inputs
    said.append([str(each.dtype) for each in (weight, image, output)]
                + [each.is_contiguous(memory_format=last) for each in (weight, image)])
print(json.dumps(said))
"""


@pytest.mark.slow
def test_a_cell_is_built_in_its_precision_and_layout(newest: ReleaseEnvironment) -> None:
    cells = [
        Cell("resnet18", 2, "default"),
        Cell("resnet18", 2, "default", dtype="float16"),
        Cell("resnet18", 2, "default", dtype="bfloat16-weights"),
        Cell("resnet18", 2, "default", layout="channels-last"),
        Cell("resnet18", 2, "default", dtype="tf32"),
    ]
    order = "\n".join(msgspec.json.encode(cell).decode() for cell in cells)
    plain, half, weights, last, tf32 = newest.answer(BUILD, input=order)
    float32, bfloat16 = "torch.float32", "torch.bfloat16"
    assert plain == [float32, float32, float32, False, False]
    assert half == [float32, float32, "torch.float16", False, False], "an autocast region"
    assert weights == [bfloat16, bfloat16, bfloat16, False, False]
    assert last == [float32, float32, float32, True, True]
    assert "NVIDIA" in tf32


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "axes",
    [
        {"dtype": "bfloat16-weights"},
        pytest.param({"dtype": "float16"}, marks=pytest.mark.nightly),
        pytest.param({"layout": "channels-last"}, marks=pytest.mark.nightly),
    ],
    ids=lambda axes: next(iter(axes.values())),
)
def test_a_launch_in_it_is_right(
    newest: ReleaseEnvironment, tmp_path: Path, axes: dict[str, str]
) -> None:
    # A layout needs convolutions; for a precision some products do.
    workload = "mobilenetv3_small_100" if "layout" in axes else "small_10x10"
    cell = Cell(workload, 1, "default", **axes)  # type: ignore[arg-type]
    launch = newest.launch(Request(cell, "cold", str(tmp_path / "cache"), BRIEF))
    assert launch.outcome.ok, launch.outcome
    assert launch.accuracy is not None
    assert launch.accuracy.compared


def test_try_knows_them_and_questions_choose_them() -> None:
    assert set(matrix.DTYPES) < set(matrix.TRIED_DTYPES)
    assert set(WEIGHTS) < set(matrix.TRIED_DTYPES)
    answer = CliRunner().invoke(app, ["try", "resnet18", "--dtype", "float8"])
    assert answer.exit_code == 1
    assert "no dtype float8; there are: float32, bfloat16, float16" in answer.output
    asked = ["try", "resnet18", "--question", "training", "--channels-last"]
    answer = CliRunner().invoke(app, asked)
    assert "leave --channels-last out" in answer.output


def test_a_cell_says_its_layout() -> None:
    assert Cell("m", 1, "default", layout="channels-last").variant == "channels-last"
