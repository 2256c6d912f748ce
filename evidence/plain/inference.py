"""inference.py MODEL [constant]: a timm model on one image, eager and compiled; without the suite.

With ``constant`` average pooling divides by the constant size of its window.
"""

import statistics
import sys
import time

import timm
import torch

torch.set_num_threads(2)
torch.manual_seed(20240724)
net = timm.create_model(sys.argv[1]).eval()
if sys.argv[2:] == ["constant"]:
    for module in net.modules():
        if isinstance(module, torch.nn.AvgPool2d):
            module.divisor_override = module.kernel_size**2
images = torch.randn(1, *timm.data.resolve_model_data_config(net)["input_size"])
forwards, times = (net, torch.compile(net)), ([], [])


def milliseconds(forward):
    start = time.perf_counter()
    forward(images)
    return 1e3 * (time.perf_counter() - start)


with torch.inference_mode():
    for _ in range(60):
        for forward, those in zip(forwards, times, strict=True):
            those.append(min(milliseconds(forward), milliseconds(forward)))
eager, compiled = (statistics.median(those[10:]) for those in times)
name = f"{torch.__version__} {' '.join(sys.argv[1:])}"
print(f"{name}: eager {eager:.1f} ms, compiled {compiled:.1f} ms, ratio {compiled / eager:.2f}")
