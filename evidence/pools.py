"""Real launches to resample from: sixty of each of four different cells.

Writes ``evidence/pools/<cell>.jsonl``. Takes about forty minutes on two cores; goes on where it was
interrupted. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec

from torchcompile_suite.cell import Cell, Launch
from torchcompile_suite.host.files import read_lines
from torchcompile_suite.measuring import interpreter
from torchcompile_suite.releases import catalogue, environments

from .collect import Job, Pool

ROOT = Path(__file__).resolve().parents[1]
POOLS = Path(__file__).with_name("pools")
# Of an AMD EPYC and the method before turns (`cell.METHOD` 1), which the intervals were chosen on.
OTHER_POOLS = Path(__file__).with_name("pools-epyc")
ENVIRONMENT = ROOT / ".asv" / "evidence-env"
# Where a process in that environment finds the suite and this package.
PYTHONPATH = f"{interpreter.SOURCE}{os.pathsep}{ROOT}"

# A convolution net, a transformer, one fused kernel, and a function that is mostly overhead.
CELLS = {
    "conv": Cell("mobilenetv3_small_100", 1, "default"),
    "transformer": Cell("vit_tiny_patch16_224", 1, "default"),
    "pointwise": Cell("pointwise_chain", 1, "default"),
    "tiny": Cell("softmax_matmul", 1, "default"),
}
LAUNCHES = 60
# Which vector instructions there are, every process asks another one that imports torch.
NO_VECTOR_CHECK = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}


def pool(name: str, folder: Path = POOLS) -> list[Launch]:
    """The forked launches of one of the cells."""
    launches = read_lines(folder / f"{name}.jsonl", Launch)
    return [launch for launch in launches if launch.process == "forked"]


def run_in_release(job: Job) -> None:
    """Collect in the newest release's environment, which is made or updated first."""
    python, said = environments.install(catalogue.read()[-1], ENVIRONMENT)
    print(said, flush=True)
    subprocess.run(
        [str(python), "-m", "evidence.collect"],
        input=msgspec.json.encode(job),
        env=interpreter.environment(python, {"PYTHONPATH": PYTHONPATH}),
        check=True,
    )


def main() -> None:
    """Fill the pools."""
    pools = [Pool(name, cell, forked=LAUNCHES) for name, cell in CELLS.items()]
    run_in_release(Job(pools, str(POOLS), variables=NO_VECTOR_CHECK))


if __name__ == "__main__":
    main()
