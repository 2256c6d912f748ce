"""The gradient of batch norm's bias in eager, beside finite differences of the loss, on a CPU."""

import torch


def loss(x, norm, weights, contiguous):
    y = norm(x)
    if contiguous and y.requires_grad:
        y.register_hook(torch.Tensor.contiguous)
    return (torch.tanh(y.flatten(2).transpose(1, 2)) * weights).sum()


print(torch.__version__)
for batch in (1, 2):
    for contiguous in (False, True):
        torch.manual_seed(0)
        x = torch.randn(batch, 3, 8, 8, dtype=torch.float64)
        norm = torch.nn.BatchNorm2d(3).double().train()
        given = x, norm, torch.randn(batch, 64, 3, dtype=torch.float64), contiguous
        loss(*given).backward()
        slopes = []
        with torch.no_grad():
            for channel in range(3):
                norm.bias[channel] += 1e-6
                above = loss(*given)
                norm.bias[channel] -= 2e-6
                slopes.append((above - loss(*given)).item() / 2e-6)
                norm.bias[channel] += 1e-6
        gradient, slopes = (
            [round(each, 3) for each in one] for one in (norm.bias.grad.tolist(), slopes)
        )
        print(f"batch {batch}, gradient copied {contiguous}: eager {gradient}, true {slopes}")
