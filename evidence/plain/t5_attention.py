"""T5's attention: does Inductor find it, at batch size 1 and 2, and milliseconds a call.

Run it with MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_TOP_PAD_=67108864: no call
then makes a page fault.
"""

import statistics
import time

import torch
from torch._dynamo.utils import counters


class Attention(torch.nn.Module):
    """As in modeling_t5.py of transformers: eight heads of width 64, no scale, a bias."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (torch.nn.Linear(512, 512, bias=False) for _ in range(4))

    def forward(self, x, bias):
        q, k, v = (
            one(x).view(x.shape[0], -1, 8, 64).transpose(1, 2) for one in (self.q, self.k, self.v)
        )
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += bias
        weights = torch.nn.functional.softmax(scores.float(), dim=-1).type_as(scores)
        found = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o(found.view(x.shape[0], -1, 512))


print(torch.__version__)
torch.manual_seed(0)
model = Attention().eval()
for batch in (1, 2):
    torch._dynamo.reset()
    counters.clear()
    calls = {"eager": model, "compiled": torch.compile(model)}
    inputs = torch.randn(batch, 512, 512), torch.randn(1, 8, 512, 512)
    times_s = {name: [] for name in calls}
    with torch.inference_mode():
        for _ in range(40):
            for name, call in calls.items():
                start = time.perf_counter()
                call(*inputs)
                times_s[name].append(time.perf_counter() - start)
    eager, compiled = (1e3 * statistics.median(one[10:]) for one in times_s.values())
    found = counters["inductor"]["fuse_attention"]
    print(f"batch {batch}: found {found}; eager {eager:.1f} ms, compiled {compiled:.1f} ms")
