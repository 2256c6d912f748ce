"""Where the time of a call goes, in eager and compiled."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from .fields import Count, Seconds, Text

Direction = Literal["forward", "backward"]
Kind = Literal["operator", "generated", "library", "copy"]
# What a call spends outside of its steps, see `Split`.
Place = Literal["guards", "entry", "buffers", "python", "exit", "idle"]
_SHORTEST_S = 1e-12
# A time, or a difference of two that noise may make negative.
Part = Annotated[float, Meta(ge=-1e7, le=1e7)]


class Operator(Struct, frozen=True, forbid_unknown_fields=True):
    """An operator of the model: a call in a graph that Dynamo captured.

    - ``name``: its name in the graph, which is that of the variable in the model's code.
    - ``called``: such as ``conv2d``; in older releases the class of a module, such as ``Conv2d``.
    - ``module``: the path of the module that calls it, such as ``layer1.0.conv1``; empty for the
      model itself. ``kind``: the class of that module.
    - ``where``: the innermost line, as ``file.py:line: code``.
    """

    name: Text
    called: Text
    module: Text
    kind: Text
    where: Text


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a call: in eager an operator, compiled a generated kernel or a call of a library.

    - ``name``: of the kernel or of the library's function.
    - ``kind``: ``copy`` is a generated kernel that only brings a tensor into the layout that a
      library wants.
    - ``operators``: those that the step computes, or for a copy those that it serves, by their
      place in `Attribution.operators`. Empty if the compiler does not say.
    - ``weights``: it copies weights, which are the same in each call, into another layout; if it is
      no ``copy``, beside what it computes.
    - ``graph``: number of the graph. ``direction``: of a training step.
    - ``seconds``: in one call.
    """

    name: Text
    kind: Kind
    operators: list[Count]
    seconds: Part
    graph: Count = 0
    direction: Direction = "forward"
    weights: bool = False


class Split(Struct, frozen=True, forbid_unknown_fields=True):
    """The time of a call and of its parts.

    - ``call_s``: seconds of a call as a user makes it.
    - ``faults``: page faults of a call, in the middle of the turns.
    - ``steps``: in the order of the calls. ``rest_s``: seconds of a call that are in no step, by
      place: the check of the guards; ``entry`` from the call to the code of the first graph,
      ``exit`` from the last step to the end; ``buffers`` before the first step of a graph and
      between its steps, where buffers are allocated and freed; ``python`` between two graphs. In
      eager all of the rest is ``python``.

    On an accelerator the steps are what it does for them, ``python`` what it does for the rest of
    the call, and ``idle`` the time in which it does nothing, whatever the host does meanwhile.
    - ``marks_s``: what the marks around the steps took, which is in none of the other figures.
    """

    call_s: Seconds
    faults: Annotated[float, Meta(ge=0)]
    steps: list[Step]
    rest_s: dict[Place, Part]
    marks_s: Seconds

    def steps_s(self, kind: Kind) -> float:
        """Seconds of the steps of that kind."""
        return sum(step.seconds for step in self.steps if step.kind == kind)

    @property
    def sum_s(self) -> float:
        """The steps and the rest."""
        return sum(step.seconds for step in self.steps) + sum(self.rest_s.values())


class Attribution(Struct, frozen=True, forbid_unknown_fields=True):
    """How the calls of a cell divide in one process.

    - ``operators``: of all graphs.
    - ``code``: the source of each generated kernel, by ``graph/name``. A warm launch does not
      repeat it.
    """

    operators: list[Operator]
    eager: Split
    mode: Split
    code: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Raise ValueError if a figure cannot be computed. Decoding calls this."""
        for split in (self.eager, self.mode):
            if split.call_s < _SHORTEST_S:
                raise ValueError("a call takes no time")
            if any(at >= len(self.operators) for step in split.steps for at in step.operators):
                raise ValueError("a step of an operator that is not there")

    def condensed(self) -> Attribution:
        """The same times without operators and code: the steps of a kind are one step."""
        return Attribution([], _condensed(self.eager), _condensed(self.mode))


def _condensed(split: Split) -> Split:
    kinds = dict.fromkeys(step.kind for step in split.steps)
    return replace(split, steps=[Step(kind, kind, [], split.steps_s(kind)) for kind in kinds])
