"""Where the time of a call goes: real releases, real compiles, and faults planted in Inductor."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from evidence import planted

from torchcompile_suite.analysis import why
from torchcompile_suite.attribution import Attribution
from torchcompile_suite.cell import Cell
from torchcompile_suite.cli.app import app
from torchcompile_suite.engine.processes import Environment
from torchcompile_suite.measurement import Launch
from torchcompile_suite.trial.why import attributed

from .conftest import ReleaseEnvironment, releases

pytestmark = pytest.mark.slow
CONV_NET = Cell("conv_net", 1, "default")


def attribute(environment: ReleaseEnvironment, cell: Cell, cache: Path) -> Launch:
    variables = environment.variables(TORCHCOMPILE_SUITE_WORKLOADS=str(planted.WORKLOADS))
    made = attributed(Environment(environment.python, variables), cell, cache)
    assert made.outcome.ok, made.outcome
    return made


@pytest.fixture(scope="module", params=releases("v2.4", "v2.9"))
def environment(
    request: pytest.FixtureRequest, make_environment: Callable[[str], ReleaseEnvironment]
) -> ReleaseEnvironment:
    return make_environment(request.param)


@pytest.fixture(scope="module")
def conv_net(
    environment: ReleaseEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> Attribution:
    made = attribute(environment, CONV_NET, tmp_path_factory.mktemp("c")).attribution
    assert made is not None
    return made


def test_each_operator_is_in_the_kernel_that_computes_it(conv_net: Attribution) -> None:
    mode = conv_net.mode
    modules = [operator.module for operator in conv_net.operators]
    assert modules == ["conv", "bn", "", "deep", "", "head"]
    steps = [(step.kind, [modules[at] for at in step.operators]) for step in mode.steps]
    assert ("library", ["conv"]) in steps
    assert ("library", ["deep"]) in steps
    assert ("generated", ["bn", ""]) in steps
    assert ("library", ["head"]) in steps
    assert ["conv"] in [served for kind, served in steps if kind == "copy"]
    assert all(step.weights for step in mode.steps if step.kind == "copy")


def test_the_operators_name_the_lines_of_the_model(conv_net: Attribution) -> None:
    lines = [operator.where for operator in conv_net.operators]
    assert lines[0].startswith("attributed.py:")
    assert lines[0].endswith(": x = torch.relu(self.bn(self.conv(x)))")
    assert lines[-1].endswith(": return self.head(self.deep(x).mean((2, 3)))")


def adds_up(made: Attribution) -> bool:
    """Nothing of the calls with marks is left out, and nothing counts twice: eager's operators take
    no more than a call without marks, and the parts of the compiled call as much.
    """
    left = made.eager.rest_s["python"] / made.eager.call_s
    return left >= -0.05 and made.mode.sum_s == pytest.approx(made.mode.call_s, rel=0.15)


def test_all_of_a_call_is_in_a_step_or_in_the_rest(
    environment: ReleaseEnvironment, conv_net: Attribution, tmp_path: Path
) -> None:
    eager, mode = conv_net.eager, conv_net.mode
    # The machine of a test may be busy: the best of three launches.
    again = (attribute(environment, CONV_NET, tmp_path / name).attribution for name in "ab")
    assert any(made and adds_up(made) for made in itertools.chain([conv_net], again))
    assert set(mode.rest_s) == {"guards", "entry", "buffers", "python", "exit"}
    assert mode.rest_s["python"] == 0
    assert all(step.seconds > 0 for step in (*eager.steps, *mode.steps))
    assert mode.rest_s["guards"] > 0


def test_generated_kernels_have_their_code(conv_net: Attribution) -> None:
    mode = conv_net.mode
    for step in mode.steps:
        if step.kind != "library":
            assert "void" in conv_net.code[f"{step.graph}/{step.name}"]


@pytest.mark.nightly
def test_a_training_step_has_groups_of_both_directions(
    environment: ReleaseEnvironment, tmp_path: Path
) -> None:
    cell = Cell("conv_net", 1, "default", phase="training")
    made = attribute(environment, cell, tmp_path / "cache")
    found = why.compiled_against_eager([made])
    times = {
        family.what: (family.before_s.value, family.after_s.value) for family in found.families
    }
    backward = {what: both for what, both in times.items() if what.startswith("backward of ")}
    convolution = next(both for what, both in backward.items() if "conv" in what.lower())
    assert min(convolution) > 0
    norm = next(both for what, both in backward.items() if "norm" in what.lower())
    assert min(norm) > 0


MODEL = """
import torch

class Net(torch.nn.Module):
    def forward(self, x, *, factor):
        return torch.softmax(torch.relu(x) * factor, -1)

def make():
    return Net(), {"x": torch.randn(256, 256), "factor": torch.randn(256)}
"""


@pytest.mark.nightly
def test_the_answers_kernels_are_in_the_folder_beside_it(
    newest: ReleaseEnvironment, tmp_path: Path
) -> None:
    model, answer, folder = (tmp_path / name for name in ("model.py", "answer.json", "opened"))
    model.write_text(MODEL)
    arguments = ["why", f"{model}:make", "--launches", "1", "--release", newest.version, "--quiet"]
    arguments += ["--json", str(answer), "--output", str(folder)]
    environment = {**newest.lie_in(tmp_path / "environments"), "NO_COLOR": "1"}
    done = CliRunner().invoke(app, arguments, env=environment)
    assert done.exit_code == 0, done.output
    (opened,) = folder.iterdir()
    code = (opened / "graph-0" / "output_code.py").read_text()
    _, compiled = json.loads(answer.read_bytes())["calls"]
    steps = compiled["launches"][0]["steps"]
    named = [step["name"] for step in steps if step["kind"] == "generated"]
    assert named
    assert all(name in code for name in named)
    assert "model.py:6: return torch.softmax" in (opened / "index.md").read_text()


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["scalar loop", "slow library", "dear buffers", "slow entry"])
def test_a_planted_fault_is_named_first(fault: str, newest: ReleaseEnvironment) -> None:
    assert planted.compared(newest.python, "pointwise_net", fault).right
