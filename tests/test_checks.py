"""Wrong results are found and right ones are not refused, in modules with other people's habits.

In one process with torch, and without a compiler: the call that is checked is the module's own, as
eager runs it, or with a fault. tests/test_compiled.py has compiled ones.
"""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import ROOT, ReleaseEnvironment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HABITS = """
import itertools, json, random
import torch
from torch import nn
from torchcompile_suite.cell import Cell
from torchcompile_suite.launch import checks, prepare, references, state, stream, values, widened
from torchcompile_suite.launch.progress import Stages
from torchcompile_suite.launch.build import ready, to_device
from torchcompile_suite.launch.forward import Forward
from torchcompile_suite.launch.subject import twin
from torchcompile_suite.launch.training import TrainingStep

class Habit(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.function = function

    def forward(self, x):
        return self.function(self, x)

class Refusal(Exception):
    pass

def counting(self, x):
    self.calls = getattr(self, "calls", 0) + 1
    return self.layer(x) * (self.calls % 5)

def collecting(self, x):
    self.__dict__.setdefault("kept", []).append(self.layer(x).sum())
    return torch.stack(self.kept).sum() + x

def drawing(self, x):
    self.generator = getattr(self, "generator", None) or torch.Generator()
    return self.layer(x) + torch.randn(x.shape, generator=self.generator)

outside = []

def remembering(self, x):
    outside.append(1)
    return self.layer(x) * (len(outside) % 7)

def refusing(self, x):
    if x.dtype != torch.float32:
        raise Refusal("float32 only")
    return self.layer(x)

def keeping_rows(self, x):
    t = torch.arange(64, dtype=x.dtype) / 8
    return t[(t + 1e8) - 1e8 > 0.4]

def writing(self, x):
    with torch.no_grad():
        self.layer.bias.mul_(0.9)
    return self.layer(x)

def keeping(self, x):
    with torch.inference_mode(False), torch.enable_grad():
        self.scaled = [self.layer.weight * 2]
    return self.layer(x)

habits = {
    "plain": lambda self, x: self.layer(x),
    "counts calls": counting,
    "collects in a list": collecting,
    "draws": lambda self, x: self.layer(x) + torch.randn_like(x),
    "gate": lambda self, x: x + (torch.rand(1) < 0.5) * self.layer(x),
    "draws from its own generator": drawing,
    "draws in Python": lambda self, x: self.layer(x) if random.random() < 0.5 else x,
    "changes its input": lambda self, x: self.layer(x.neg_()),
    "changes its weights": writing,
    "keeps what autograd computed": keeping,
    "refuses float64": refusing,
    "chooses rows by rounding": keeping_rows,
    "rounds to bfloat16": lambda self, x: self.layer(x).bfloat16().float(),
    "state outside": remembering,
}

def judged(function, factor, dtype=torch.float32):
    torch.manual_seed(0)
    module = Habit(function).eval()
    subject = Forward(Cell("habit", 1, "default"), module, (torch.randn(4, 16),))
    with subject.context():
        for _ in range(3):
            subject.eager()
        call = lambda: (subject.eager() * factor).to(dtype)
        found = checks.check(subject, call, Stages("habit"))
    return found

results = {}
for name, function in habits.items():
    right, wrong = judged(function, 1.0), judged(function, 0.6)
    results[name] = {
        "right": [right.reason, right.checked.reference, right.checked.notes],
        "wrong": wrong.reason,
        "random": right.expected.random,
    }

results["dtype"] = [
    (found.reason, found.values)
    for name in ("plain", "draws")
    for found in [judged(habits[name], 1.0, torch.float64)]
]

def choosing(self, x):
    t = torch.arange(640, dtype=x.dtype) / 8
    return ((t + 1e8) - 1e8 > 0.4).long()

def chosen(flips):
    "Of 28 numbers, float64 chooses otherwise than eager."
    subject = Forward(Cell("habit", 1, "default"), Habit(choosing).eval(), (torch.randn(4, 16),))
    def call():
        made = subject.eager()
        return torch.cat([1 - made[:flips], made[flips:]])
    found = checks.check(subject, call, Stages("habit"))
    return [found.reason, found.checked.compared, found.checked.notes[-1]]

results["chooses"] = {flips: chosen(flips) for flips in (0, 3, 640)}

def beside(factor):
    "Logits beside a choice that rounding decides: the logits have to be right."
    function = lambda self, x: (self.layer(x), choosing(self, x))
    subject = Forward(Cell("habit", 1, "default"), Habit(function).eval(), (torch.randn(4, 16),))
    def call():
        logits, made = subject.eager()
        return logits * factor, torch.cat([1 - made[:3], made[3:]])
    return checks.check(subject, call, Stages("habit")).reason

def cold(function, result, **known):
    "What is said of the first result of a cold start."
    subject = Forward(Cell("habit", 1, "default"), Habit(function).eval(), (torch.randn(4, 16),))
    first = references.first_result(subject)._replace(**known)
    checked, reason = prepare.judged(first, result(subject.eager()))
    return [reason, checked.compared, checked.notes]

plain = habits["plain"]
far = values.parts(torch.full((4, 16), 9.0))
results["cold"] = {
    "right": cold(plain, lambda made: made),
    "dtype": cold(plain, lambda made: made.double()),
    "zeros": cold(plain, lambda made: made * 0, expected=far),
    "refuses": cold(refusing, lambda made: made),
    "chooses": cold(choosing, lambda made: torch.cat([1 - made[:3], made[3:]])),
    "chooses wrong": cold(choosing, lambda made: 1 - made),
}

def detecting(self, x):
    return [self.layer(x) * 300, self.layer(x).sigmoid(), torch.arange(50_000), self.layer(x) > 0]

def in_detections(place, change):
    subject = Forward(Cell("habit", 1, "default"), Habit(detecting).eval(), (torch.randn(4, 16),))
    def call():
        made = subject.eager()
        made[place] = change(made[place])
        return made
    return checks.check(subject, call, Stages("habit")).reason

one = torch.arange(64).view(4, 16) == 5
results["beside others"] = {
    "right": in_detections(0, lambda boxes: boxes),
    "scores": in_detections(1, lambda scores: scores * 1.01),
    "one score": in_detections(1, lambda scores: scores * (1 + 0.01 * one)),
    "mask": in_detections(3, lambda mask: ~mask),
    "one of the mask": in_detections(3, lambda mask: mask ^ one),
}

def force(self, x):
    return torch.autograd.grad(self.layer(x).square().sum(), x)[0]

inputs = (torch.randn(4, 16).requires_grad_(),)
subject = Forward(Cell("habit", 1, "default"), Habit(force).eval(), inputs)
subject.gradients = "grad"
with subject.context():
    found = checks.check(subject, subject.eager, Stages("habit"))
results["force"] = [found.reason, found.checked.reference, found.checked.notes]

rows = Forward(Cell("habit", 1, "default"), Habit(keeping_rows).eval(), (torch.randn(4, 16),))
results["choice"] = [
    beside(1.0), beside(0.6),
    checks.check(rows, lambda: rows.eager()[:0], Stages("habit")).reason,
]

class Flip(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sign", torch.ones(1))

    def forward(self, x):
        return x * self.sign.neg_()

class Listed(nn.Module):
    "Its block stands in a plain list, too."
    def __init__(self):
        super().__init__()
        self.block = Flip()
        self.blocks = [self.block]

    def forward(self, x):
        return self.blocks[0](x)

subject = Forward(Cell("listed", 1, "default"), Listed().eval(), (torch.randn(4, 16),))
with subject.context():
    found = checks.check(subject, subject.eager, Stages("listed"))
    signs = itertools.cycle([-1, 1])
    left = checks.check(subject, lambda: subject.inputs[0] * next(signs), Stages("listed"))
results["in a list"] = [found.reason, found.checked.reference, found.checked.notes, left.reason]

lstm = nn.LSTM(4, 4)
kept = state.State(lstm, ())
with torch.no_grad():
    lstm.weight_ih_l0.add_(1)
results["weights in a list"] = [list(kept.changes()), kept.touched()]

normed = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 4)))
normed(torch.ones(1, 4))  # its weight is computed by autograd now
results["twin"] = bool((twin(normed)(torch.ones(1, 4)) == normed(torch.ones(1, 4))).all())
one = torch.ones(1)
results["devices"] = [
    [tensor.device.type for tensor in to_device(inputs, "meta")]
    for inputs in ((one, one), (one.to("meta"), one))
]
results["lists"] = [
    stream._varying(requests)
    for requests in ([([one],), ([one, one],)], [(one,), (one[None],)], [(one,), (one,)])
]

def full(subject, module, given):
    asked.append(given[0].device.type)
    raise MemoryError

asked = []
out_of_memory = type("OutOfMemory", (Forward,), {"in_double": full})
module = Habit(habits["plain"]).eval()
subject = out_of_memory(Cell("habit", 1, "default"), module, (torch.randn(4, 16),))
found = checks.check(subject, subject.eager, Stages("habit"))
results["out of memory"] = [found.reason, found.checked.reference, found.checked.notes, asked]

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix = nn.BatchNorm2d(3), nn.Linear(3, 3)

    def forward(self, x, right=False):
        x = self.norm(x)
        if right:
            x.register_hook(lambda gradient: gradient.contiguous())
        tokens = x.flatten(2).transpose(1, 2)
        return tokens + torch.tanh(self.mix(tokens))

def built():
    torch.manual_seed(0)
    return Tokens().train()

def stepped(batch, right, factor):
    module, cell = built(), Cell("tokens", batch, "default", phase="training")
    subject = TrainingStep(cell, module, (torch.randn(batch, 3, 8, 8),), built)
    with subject.context():
        for _ in range(3):
            subject.eager()
        call = lambda: subject.call(lambda x: module(x, right) * factor)
        found = checks.check(subject, call, Stages("tokens"))
    return [found.reason, found.checked.reference, found.checked.notes]

results["training"] = {
    "eager is wrong": stepped(1, True, 1.0),
    "both are wrong": stepped(1, True, 0.6),
    "eager is right": stepped(2, True, 1.0),
    "compiled is wrong": stepped(2, True, 0.6),
}

class Masked(nn.Module):
    "A buffer that comes with the first call."
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)
        self.register_buffer("mask", None)

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.ones(8, 8).tril()
        return self.mix(x) @ self.mask

def masked():
    torch.manual_seed(0)
    return Masked().train()

subject = TrainingStep(
    Cell("masked", 4, "default", phase="training"), masked(), (torch.randn(4, 8),), masked
)
with subject.context():
    subject.eager()
    found = checks.check(subject, subject.eager, Stages("masked"))
results["a late buffer"] = [found.reason, found.checked.reference]

class Silent(nn.Linear):
    def train(self, mode=True):
        super().train(mode)

    def to(self, *args):
        super().to(*args)

class Exported(nn.Linear):
    def train(self, mode=True):
        raise NotImplementedError("Calling train() is not supported.")

silent, exported = Silent(2, 2), Exported(2, 2)
ready(silent, train=False, device="cpu")
ready(exported, train=False, device="cpu")
try:
    ready(exported, train=True, device="cpu")
except Exception as error:
    refused = f"{type(error).__name__}: {error}"
results["polite"] = [silent.training, refused]
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(newest: ReleaseEnvironment) -> Any:
    return newest.answer(HABITS)


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "counts calls",
        "collects in a list",
        "draws",
        "gate",
        "draws from its own generator",
        "draws in Python",
        "changes its input",
        "changes its weights",
        "keeps what autograd computed",
    ],
)
def test_both_sides_start_from_the_same_seed_and_state(results: dict[str, Any], name: str) -> None:
    assert results[name]["right"] == ["", "float64", []]
    assert results[name]["wrong"].startswith("relative error")
    assert results[name]["random"] == name.startswith(("draws", "gate"))


def test_another_dtype_is_wrong_and_no_fault_of_values(results: dict[str, Any]) -> None:
    """No other draw explains it."""
    assert results["dtype"] == 2 * [["the output has the dtype float64 instead of float32", False]]


def test_a_failing_reference_is_no_fault_of_the_module(results: dict[str, Any]) -> None:
    for name, why in {
        "refuses float64": "Refusal: float32 only",
        "chooses rows by rounding": "rounding decides what it chooses, and float64 chooses "
        "otherwise",
    }.items():
        note = f"compared with eager in its own dtype, not in float64: {why}"
        assert results[name]["right"] == ["", "same-dtype", [note]]
        assert results[name]["wrong"]


def test_a_cast_in_forward_does_not_round_the_reference(results: dict[str, Any]) -> None:
    """Compiled code may leave the rounding out; eager's own error is as large."""
    assert results["rounds to bfloat16"]["right"][:2] == ["", "float64"]
    assert results["rounds to bfloat16"]["wrong"]


def test_a_choice_that_rounding_decides_is_not_called_wrong(results: dict[str, Any]) -> None:
    same, some, all_ = (results["chooses"][str(flips)] for flips in (0, 3, 640))
    assert same[:2] == ["", True]
    assert some == [
        "",
        False,
        "accuracy not checked: rounding decides what it chooses, compiled or not",
    ]
    assert all_[0].startswith("relative error")
    right, wrong, no_rows = results["choice"]
    assert right == ""
    assert wrong.startswith("relative error")
    assert no_rows.startswith("structure, shape")


def test_a_first_result_is_checked_as_all_others(results: dict[str, Any]) -> None:
    cold = results["cold"]
    assert cold["right"] == ["", True, []]
    assert cold["dtype"][0] == "the output has the dtype float64 instead of float32"
    own_dtype = "compared with eager in its own dtype, not in float64: "
    assert cold["refuses"] == ["", True, [f"{own_dtype}Refusal: float32 only"]]
    reason, compared, notes = cold["zeros"]
    assert (reason, compared) == ("", False)
    assert notes[-1].startswith("accuracy not checked: rounding alone moves eager by")
    reason, compared, notes = cold["chooses"]
    assert (reason, compared) == ("", False)
    assert notes[0].startswith(f"{own_dtype}rounding decides what it chooses")
    assert notes[1:] == ["accuracy not checked: rounding decides what it chooses, compiled or not"]
    assert cold["chooses wrong"][0].startswith("relative error")


def test_a_wrong_tensor_is_found_beside_larger_ones(results: dict[str, Any]) -> None:
    found = results["beside others"]
    for name in ("right", "one score", "one of the mask"):
        assert found[name] == "", name
    for name in ("scores", "mask"):
        assert found[name].startswith("half of the values of an output tensor are off by"), name


def test_an_input_needs_a_gradient_in_float64_too(results: dict[str, Any]) -> None:
    assert results["force"] == ["", "float64", []]


def test_the_state_of_a_module_in_a_list_is_put_back_and_compared(results: dict[str, Any]) -> None:
    reason, reference, notes, left = results["in a list"]
    assert (reason, reference, notes) == ("", "float64", [])
    assert left.startswith("after the call, the state in block._buffers.sign")
    assert results["weights in a list"] == [[], True]
    assert results["a late buffer"] == ["", "float64"]


def test_modules_and_inputs_of_any_kind_are_arranged(results: dict[str, Any]) -> None:
    assert results["twin"]
    assert results["devices"] == [["meta", "meta"], ["meta", "cpu"]]
    assert results["lists"] == [[], [], [[]]]


def test_what_cannot_be_put_back_is_not_called_right(results: dict[str, Any]) -> None:
    reason, _, notes = results["state outside"]["right"]
    assert reason == ""
    assert notes == [
        "accuracy not checked: with the same seed and the same state, eager differs from itself"
    ]


def test_without_room_for_float64_eager_is_the_reference(results: dict[str, Any]) -> None:
    reason, reference, notes, asked = results["out of memory"]
    assert (reason, reference, asked) == ("", "same-dtype", ["cpu", "cpu"])
    assert notes == ["compared with eager in its own dtype, not in float64: MemoryError:"]


def test_the_slope_of_the_loss_says_whose_gradients_are_right(results: dict[str, Any]) -> None:
    """Eager's backward pass of batch norm is wrong on a CPU at batch 1 (docs/stories)."""
    training = results["training"]
    reason, reference, notes = training["eager is wrong"]
    assert (reason, reference) == ("", "slopes")
    assert any(note.startswith("eager's own gradients are wrong by") for note in notes)
    assert training["eager is right"][:2] == ["", "float64"]
    for name in ("both are wrong", "compiled is wrong"):
        assert training[name][0].startswith("relative error")


def test_modules_may_return_nothing_and_refuse(results: dict[str, Any]) -> None:
    training, refused = results["polite"]
    assert training is False
    assert refused == (
        "Unsupported: Exported refuses train(): NotImplementedError: Calling train() is not "
        "supported."
    )


STREAMS = """
import collections, dataclasses, json, tempfile
import torch
from torch import nn
from torchcompile_suite.cell import Cell
from torchcompile_suite.launch import checks, device, foreign, original
from torchcompile_suite.launch.build import build
from torchcompile_suite.launch.failures import Unsupported
from torchcompile_suite.launch.forward import Forward
from torchcompile_suite.launch.inspect import dynamo
from torchcompile_suite.launch.inspect.observe import Observer
from torchcompile_suite.launch.progress import Stages
from torchcompile_suite.launch.stream import ShapeStream
from torchcompile_suite.workloads import workload

class Habit(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.function = function

    def forward(self, *given):
        return self.function(self.layer, *given)

@dataclasses.dataclass
class Batch:
    x: torch.Tensor

class Holder:
    def __init__(self, x):
        self.x = x

def rows(size):
    return [torch.randn(size * number, 8) for number in (2, 3, 5, 6)]

UserDict = collections.UserDict
# What forward makes of its inputs, and the inputs of a request with such rows.
streams = {
    "a number first": (lambda layer, scale, x: layer(x) * scale, lambda x: (torch.tensor(2.0), x)),
    "none first": (lambda layer, mask, x: layer(x), lambda x: (None, x)),
    "a dataclass out": (lambda layer, x: Batch(layer(x)), lambda x: (x,)),
    "a UserDict out": (lambda layer, x: UserDict(x=layer(x)), lambda x: (x,)),
    "a dataclass in": (lambda layer, batch: layer(batch.x), lambda x: (Batch(x),)),
    "a UserDict in": (lambda layer, batch: layer(batch["x"]), lambda x: (UserDict(x=x),)),
    "an object in": (lambda layer, batch: layer(batch.x), lambda x: (Holder(x),)),
}

def served(name, policy):
    "Why its outputs are wrong, its shapes and its graphs; or why the policy is refused."
    forward, wrap = streams[name]
    cell = Cell("stream", 1, "default", shapes=policy, backend="eager")
    subject = ShapeStream(cell, Habit(forward).eval(), lambda size: [*map(wrap, rows(size))])
    dynamo.reset()
    with subject.context():
        try:
            call, _ = subject.compile()
        except Unsupported as error:
            return str(error)
        call()
        graphs = dynamo.captures()
        return [checks.check(subject, call, Stages("stream")).reason, subject.shapes, graphs]

results = {
    name: {policy: served(name, policy) for policy in ("buckets", "marked", "automatic")}
    for name in streams
}

class Popping(nn.Module):
    def forward(self, batch):
        return batch.pop("x") * 2

@workload("popping", family="tests", stream=lambda size: [({"x": x},) for x in rows(size)])
def popping(batch_size):
    return Popping(), ({"x": rows(batch_size)[0]},)

cell = Cell("popping", 1, "default", shapes="recompile", backend="eager")
subject, fields = build(cell), {}
notes = foreign.learn(subject, steady=False)
with subject.context(), tempfile.TemporaryDirectory() as folder:
    observer = Observer(cell, folder, Stages("popping"), fields)
    call, forward = subject.compile()
    call()
    observer.after_compile(subject, forward, device.get("cpu"), 1.0)
    call()
    results["popping"] = [["x" in batch for batch, in subject.requests], observer._recaptures]

@workload("reset", family="tests", stream=lambda size: [(x,) for x in rows(size)])
def reset(batch_size):
    module = nn.Linear(8, 8)
    original.keep_reset(module, lambda: None)
    return module, (rows(batch_size)[0],)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

class Blocks(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.function, self.sum, self.calls = function, torch.zeros(4, 8), 0
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        return self.function(self, self.blocks(x))

def summing(self, x):
    self.sum = 0.5 * self.sum + x
    return self.sum

def counting(self, x):
    self.calls += 1
    return x * (self.calls % 5)

def counting_in_a_buffer(self, x):
    return x * self.count.add_(1)

def in_blocks(function, factor=1.0):
    module = Blocks(function).eval()
    cell = Cell("blocks", 1, "default", way="regional", backend="eager")
    subject = Forward(cell, module, (torch.randn(4, 8),))
    with subject.context():
        call, _ = subject.compile()
        for _ in range(3):
            call()
        judged = checks.check(subject, lambda: call() * factor, Stages("blocks"))
    return [judged.reason, judged.checked.compared, judged.checked.notes]

results["blocks"] = {
    "sum": in_blocks(summing),
    "calls": in_blocks(counting),
    "buffer": in_blocks(counting_in_a_buffer),
    "wrong": in_blocks(lambda self, x: x, 0.6),
    "wrong buffer": in_blocks(counting_in_a_buffer, 0.6),
}

def refused(make):
    try:
        make()
    except Unsupported as error:
        return str(error)

module = Blocks(summing)
original.keep_reset(module, lambda: module.sum.zero_())
cell = Cell("blocks", 1, "default", way="regional", backend="eager")
results["reset"] = [
    refused(lambda: build(Cell("reset", 1, "default", shapes="automatic"))),
    refused(Forward(cell, module, (torch.randn(4, 8),)).compile),
]
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def served(newest: ReleaseEnvironment) -> Any:
    return newest.answer(STREAMS)


@pytest.mark.parametrize(
    "name",
    [
        "a number first",
        "none first",
        "a dataclass out",
        "a UserDict out",
        "a dataclass in",
        "a UserDict in",
    ],
)
def test_sizes_are_padded_and_marked_wherever_they_vary(served: dict[str, Any], name: str) -> None:
    """Batches of 2, 3, 5 and 6, in buckets 2, 4 and 8."""
    assert served[name] == {"buckets": ["", 4, 3], "marked": ["", 4, 1], "automatic": ["", 4, 2]}


def test_sizes_that_are_not_found_are_neither_padded_nor_marked(served: dict[str, Any]) -> None:
    of_object = served["an object in"]
    assert of_object["automatic"] == ["", 4, 2]
    for policy in ("buckets", "marked"):
        assert of_object[policy].startswith("no size to pad or to mark: the requests ")


def test_requests_that_are_served_once_more_are_put_back(served: dict[str, Any]) -> None:
    assert served["popping"] == [4 * [True], {"tail": 0}]


def test_state_of_the_compiled_copy_is_not_called_wrong(served: dict[str, Any]) -> None:
    blocks = served["blocks"]
    for name in ("sum", "calls"):
        reason, compared, notes = blocks[name]
        assert (reason, compared) == ("", False)
        assert notes[-1].startswith("accuracy not checked: a call changes the module's state, and")
    assert blocks["buffer"] == ["", True, []]
    for name in ("wrong", "wrong buffer"):
        assert blocks[name][0].startswith("relative error")


def test_a_reset_that_does_not_reach_all_is_refused(served: dict[str, Any]) -> None:
    stream, regional = served["reset"]
    assert stream.startswith("the factory's reset is for one call, and a pass over a stream")
    assert regional == "the factory's reset does not know the copy whose blocks are compiled"


def test_faults_made_on_purpose_are_caught(newest: ReleaseEnvironment) -> None:
    """The status says so: 69 of 72, and no false alarm."""
    done = newest.run("evidence/wrong_results.py", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
