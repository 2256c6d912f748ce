import pytest
import torch

from encoder import Encoder


@pytest.mark.compile_contract(fullgraph=True, max_recompiles=1)
def test_forward(compile_contract):
    batches = [torch.randn(size, 16) for size in (1, 4, 8)]
    with torch.no_grad():
        compile_contract.check(Encoder().eval(), batches)


def test_a_training_step(compile_contract):
    compile_contract.check(Encoder(), torch.randn(4, 16), backward=True)
