"""Counts for a GPU that is not here, beside those of the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchcompile_suite.contract import file

from ..conftest import ReleaseEnvironment
from ..examples import network

FORWARD = """
self.calls += 1
x = self.conv(x).relu().mean((2, 3))
return torch.softmax(self.head(x), -1)
"""
MODEL = f"""{network(FORWARD, 'self.register_buffer("calls", torch.zeros(1))')}

def make(batch_size=2):
    return Net(), torch.randn(batch_size, 3, 16, 16)
"""
TARGET = ("--target", "cuda:sm90")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_target_is_counted_beside_the_cpu(newest: ReleaseEnvironment, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    variables = newest.variables() | newest.lie_in(tmp_path / "environments")

    def suite(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "torchcompile_suite", *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=600,
        )

    release = ("--release", newest.version)
    for options in ((), TARGET, (*TARGET, "--mode", "reduce-overhead")):
        done = suite("contract", "update", "model.py:make", *options, *release)
        assert "1 entry written" in done.stdout, done.stdout + done.stderr
    known = {(each.call, each.device): each.counts for each in file.read(_contract(model)).entries}
    assert len(known) == 3
    # What `try` generates for the target in another way has the same counts.
    done = suite("try", "model.py:make", *TARGET, *release, "--json", "-")
    for cell in json.loads(done.stdout)["cells"]:
        counts, made = known[cell["cell"]["mode"], "cuda:sm90"], cell["generated"]
        forward = made["forward"]
        assert counts.graphs == made["graphs"]
        assert counts.kernels == forward["triton_kernels"]
        launches = forward["triton_launches"] + forward["library_launches"]
        assert counts.launches == launches + forward["host_launches"]
        assert counts.bytes == forward["bytes_after"]
        assert [site.reason for site in counts.cudagraph_skips] == [
            text.partition(" (")[0] for text in made["cudagraph_skips"]
        ]
    assert known["default", "cpu"].operators != known["default", "cuda:sm90"].operators

    done = suite("contract", "check", *release)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as in the contract") == 3
    model.write_text(MODEL.replace("        x = self", "        print(1)\n        x = self"))
    done = suite("contract", "check", *release)
    assert done.returncode == 1
    assert done.stdout.count("model.py:14 in forward: print(1)") == 3, done.stdout
    assert f"contract update model.py:make --target cuda:sm90 {' '.join(release)}" in done.stdout

    done = suite("contract", "update", "model.py:make", *TARGET, "--backend", "eager", *release)
    assert "backend eager generates no code for cuda:sm90" in done.stderr
    assert done.returncode != 0


def _contract(model: Path) -> Path:
    return model.with_name(file.NAME)
