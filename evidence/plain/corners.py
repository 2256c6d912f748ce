"""How far the gradients of a training step in float32 are from those in float64, step by step.

Each line: the step, then the relative error of eager and of the compiled module, which have the
same weights. timm's resnet18, batch 4, AdamW with a learning rate of 1e-5.
"""

import copy

import timm
import torch

torch.set_num_threads(2)
torch.manual_seed(0)
net = timm.create_model("resnet18").train()
images = torch.randn(4, 3, 224, 224)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
compiled = torch.compile(net)


def gradients(module, forward, values):
    module.zero_grad()
    forward(values).square().mean().backward()
    return torch.cat([parameter.grad.double().flatten() for parameter in module.parameters()])


print(torch.__version__)
for step in range(60):
    exact = copy.deepcopy(net).double()
    expected = gradients(exact, exact, images.double())
    errors = [
        ((gradients(net, forward, images) - expected).norm() / expected.norm()).item()
        for forward in (compiled, net)
    ]
    print(step, *(f"{error:.0e}" for error in errors[::-1]), flush=True)
    optimizer.step()
