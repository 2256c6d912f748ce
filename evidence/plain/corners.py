"""How far the gradients of a training step in float32 are from those in float64.

timm's resnet18, batch 4. First, steps from the same weights with other images; then the steps of
one training with AdamW and a learning rate of 1e-5. Each line: the images or the step, then the
relative error of eager and of the compiled module, which have the same weights.
"""

import copy

import timm
import torch

torch.set_num_threads(2)
torch.manual_seed(20240724)
net = timm.create_model("resnet18").train()
compiled = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
start = copy.deepcopy(net.state_dict())


def gradients(module, forward, values):
    module.zero_grad()
    forward(values).square().mean().backward()
    return torch.cat([parameter.grad.double().flatten() for parameter in module.parameters()])


def show(name, images):
    exact = copy.deepcopy(net).double()
    expected = gradients(exact, exact, images.double())
    for forward in (net, compiled):
        error = (gradients(net, forward, images) - expected).norm() / expected.norm()
        name = f"{name} {error:.0e}"
    print(name, flush=True)


print(torch.__version__)
for seed in range(12):
    torch.manual_seed(seed)
    net.load_state_dict(start)
    show(f"images {seed}", torch.randn(4, 3, 224, 224))
torch.manual_seed(0)
images = torch.randn(4, 3, 224, 224)
for step in range(60):
    show(f"step {step}", images)
    optimizer.step()
