"""Small models that do what strangers' models do; tests/test_strangers.py builds and calls them."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import os
import random
import time
import typing

import numpy
import torch
from torch import nn

SMALL = (4, 8)


def linear():
    return nn.Linear(8, 8)


def rows():
    return torch.randn(*SMALL)


# Compiled already


def wrapped():
    return torch.compile(linear()), rows()


class Doubling(nn.Module):
    """Compiled in place, torch's own modules stay in eager up to 2.9."""

    def forward(self, x):
        return x * 2


def in_place():
    module = Doubling()
    module.compile()
    return module, rows()


def in_parts():
    return nn.Sequential(torch.compile(linear()), nn.ReLU(), torch.compile(linear())), rows()


class Decorated(nn.Module):
    @torch.compile
    def forward(self, x):
        return x * 2


def decorated():
    return Decorated(), rows()


class Assigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = torch.compile(self.forward)  # type: ignore[method-assign]

    def forward(self, x):
        return x * 2


def assigned():
    return Assigned(), rows()


@torch.compile
def doubled(x):
    return x * 2


def helping(x):
    return doubled(x) + 1


class Helped(nn.Module):
    def forward(self, x):
        return helping(x)


def helped():
    return Helped(), rows()


class Hidden(nn.Module):
    """Compiles where nobody finds it."""

    def forward(self, x):
        return torch.compile(lambda value: value * 2, backend="eager")(x)


def hidden():
    return Hidden(), rows()


class Runner:
    """A plain object, which is not searched."""

    def __init__(self, net):
        self.call = torch.compile(net, backend="eager")


class Driven(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 8), nn.GELU())
        self.runner = Runner(self.net)

    def forward(self, x):
        return self.runner.call(x)


def driven():
    return Driven(), rows()


def driven_before():
    """The factory calls the module, which compiles it."""
    module, given = driven()
    module(given)
    return module, given


class Conditional(nn.Module):
    """torch compiles the condition for itself."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def conditional():
    return Conditional(), rows()


class Disabled(nn.Module):
    """A disabled function is no compiled one."""

    @torch.compiler.disable
    def forward(self, x):
        return x * 2


def disabled():
    return Disabled(), rows()


# Inputs


class Shrinking(nn.Module):
    def forward(self, x, many):
        many.append(x.mul_(0.5))
        return x + 1


def shrinking():
    return Shrinking(), (rows(), [rows()])


class Holder:
    def __init__(self, x):
        self.x = x


class Wearing(nn.Module):
    def forward(self, batch):
        return batch.x.mul_(0.5) + 1


def wearing():
    return Wearing(), (Holder(rows()),)


class OneArgument(nn.Module):
    def forward(self, batch):
        if isinstance(batch, collections.abc.Mapping):
            return batch["x"] + batch["y"]
        if isinstance(batch, (list, tuple)):
            return batch[0] + batch[1]
        return batch.x + batch.y


@dataclasses.dataclass(frozen=True)
class Batch:
    x: torch.Tensor
    y: torch.Tensor


class Pair(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def a_dict():
    return OneArgument(), {"x": rows(), "y": rows()}


def a_list():
    return OneArgument(), [rows(), rows()]


class Detector(nn.Module):
    """Takes a list of images, each of its own size."""

    def forward(self, images):
        return torch.stack([image.mean((1, 2)) for image in images])


def images():
    return Detector(), ([torch.rand(3, 8, 6), torch.rand(3, 6, 8)],)


def a_user_dict():
    return OneArgument(), collections.UserDict(x=rows(), y=rows())


def a_dataclass():
    return OneArgument(), Batch(rows(), rows())


def a_named_tuple():
    return OneArgument(), Pair(rows(), rows())


class Several(nn.Module):
    def forward(self, x, mask=None, *, scale=1.0):
        return x * scale if mask is None else x * mask


def a_none():
    return Several(), (rows(), None)


def both():
    return Several(), (rows(),), {"scale": 2.0}


class Nothing(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(rows())

    def forward(self):
        return self.weight * 2


def nothing():
    return Nothing()


def no_rows():
    return linear(), torch.randn(0, 8)


def meta():
    return nn.Linear(8, 8, device="meta"), rows()


def lazy():
    return nn.LazyLinear(8), rows()


class WithTargets(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.unused = nn.LazyLinear(8), nn.LazyLinear(4)

    def forward(self, x, targets=None):
        if self.training and targets is None:
            raise ValueError("targets needed")
        return self.layer(x)


def with_targets():
    return WithTargets(), rows()


class Lazily(nn.Module):
    """A part that only training uses."""

    def __init__(self):
        super().__init__()
        self.layer, self.aux = nn.LazyLinear(8), nn.LazyLinear(4)

    def forward(self, x):
        return (self.layer(x), self.aux(x)) if self.training else self.layer(x)


def lazily():
    module, given = Lazily(), rows()
    assert module.training
    return module, given


def drawn():
    size = random.randint(4, 4000)
    return nn.Linear(8, 8), torch.full((size, 8), float(numpy.random.rand()))


def complex_numbers():
    return Several(), torch.randn(4, 4, dtype=torch.complex64)


def sparse():
    return Several(), torch.eye(4).to_sparse()


def nested():
    return Several(), torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])


class Labelled(torch.Tensor):
    """torch's own deepcopy refuses it."""


class Summing(nn.Module):
    def forward(self, parts):
        return sum(parts)


def a_generator():
    return Summing(), ((part for part in rows()),)


def three():
    return Several(), rows(), rows()


def with_loss():
    """The third value is a function, and no reset."""
    return linear(), rows(), nn.CrossEntropyLoss()


def with_function():
    return linear(), rows(), nn.functional.cross_entropy


class Reader(nn.Module):
    def forward(self, x):
        return x.sub_(len(x.label)) * 2


def labelled():
    x = rows().as_subclass(Labelled)
    x.label = "cat"
    return Reader(), x


# Gradients


class Slope(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(self.net(x).tanh().sum(), x)[0]


def slope():
    return Slope(), rows()


class Remembering(Slope):
    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = torch.ones(8)  # under inference_mode no tensor that autograd takes
        return super().forward(x) * self.scale.requires_grad_()


def remembering():
    return Remembering(), rows()


# State


class Log(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = []

    def forward(self, x):
        self.log.append(x * 2)
        return x


def log():
    return Log(), rows()


class Slowing(nn.Module):
    """Keeps no tensor, and has more to do in each call."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(len(self.seen))
        for _ in self.seen:
            x = x + 1
        return x


def slowing():
    return Slowing(), rows()


class OnASlowedMachine(nn.Module):
    """Slows down as a machine does on which others begin to work: every model of the process."""

    calls = 0

    def forward(self, x):
        OnASlowedMachine.calls += 1
        until = time.perf_counter() + 5e-6 * OnASlowedMachine.calls
        while time.perf_counter() < until:
            pass
        return x + 1


def on_a_slowed_machine():
    return OnASlowedMachine(), rows()


def renewed():
    module = Log()
    return module, rows(), module.log.clear


class Recent(nn.Module):
    """Keeps the last few results only."""

    def __init__(self):
        super().__init__()
        self.kept: collections.deque[torch.Tensor] = collections.deque(maxlen=20)

    def forward(self, x):
        self.kept.append(x * 2)
        return x


def recent():
    return Recent(), rows()


class Limited(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 6:
            raise IndexError("the table is full")
        return x * 2


def limited():
    return Limited(), rows()


def refilled():
    module = Limited()
    return module, (rows(),), {}, lambda: setattr(module, "calls", 0)


class Summed(nn.Module):
    """Its state comes with the first call: in inference mode, a tensor of that."""

    def __init__(self):
        super().__init__()
        self.sum: torch.Tensor | None = None

    def forward(self, x):
        self.sum = torch.zeros(SMALL) if self.sum is None else self.sum
        self.sum += x
        return self.sum * 2


def zeroed():
    module = Summed()
    return module, rows(), lambda: module.sum.zero_()  # type: ignore[union-attr]


# Folders


def own_cache():
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/tmp/own"
    return linear(), rows()


# Left to eager


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.old = torch.jit.script(linear())

    def forward(self, x):
        return self.old(x * 2)


def scripted():
    return Scripted(), rows()


class Talking(nn.Module):
    def forward(self, x):
        x = x.relu()
        print(x.shape[0], x.sum() > 0)
        return x + 1


def talking():
    return Talking(), rows()


class Quiet(nn.Module):
    def forward(self, x):
        return x.relu() + 1


class Looping(nn.Module):
    def __init__(self):
        super().__init__()
        self.quiet = Quiet()

    def forward(self, x):
        for _ in range(2):
            x = self.quiet(x)
            print(x.shape[0])
        return x


def looping():
    return Looping(), rows()
