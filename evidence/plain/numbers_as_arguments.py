"""Python numbers as arguments of a compiled function: what fails, and how often it is compiled."""

import torch
from torch._dynamo.utils import counters

CASES = {
    "x * t": (lambda x, t: x * t, (1.5, 2.5, 9.75)),
    "t % 7": (lambda x, t: x + t % 7, (1.5, 2.5, 9.75)),
    "float(k % 3)": (lambda x, k: x + float(k % 3), (1, 2, 5)),
    "t - 7 * (t // 7)": (lambda x, t: x + (t - 7 * (t // 7)), (1.5, 2.5, 9.75)),
    "t ** 2, negative": (lambda x, t: x + t**2, (-1.5, -2.5, -9.75)),
    "t * t, negative": (lambda x, t: x + t * t, (-1.5, -2.5, -9.75)),
}

print(torch.__version__)
for name, (function, values) in CASES.items():
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(function)
    said = []
    for value in values:
        try:
            close = torch.allclose(compiled(torch.ones(3), value), function(torch.ones(3), value))
            said.append("right" if close else "wrong")
        except Exception as error:
            said.append(type(error).__name__)
    for value in range(20):  # values that no case has yet
        try:
            compiled(torch.ones(3), type(values[0])(100 + 1.25 * value))
        except Exception:
            break
    print(f"{name:18} {', '.join(said)}; compiled {counters['stats']['unique_graphs']} times")
