"""The answer to each question that people ask, in one sentence with its interval, and its table.

`QUESTIONS` has them all: a new one needs a line there and a function in a module of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...errors import SuiteError
from ...results.records import Record
from . import generated, pays, processes, variants, ways
from .common import Answer

__all__ = ["QUESTIONS", "Answer", "Answered", "Asked", "get", "names", "newest"]


class Asked(NamedTuple):
    """A question that people ask. ``name``: in commands and addresses.

    ``answer`` takes the newest records of one machine with one release, of any cells and failed
    ones, too, in any order and without samples, and answers from those of its question. If nothing
    of the question was measured, the sentence says so and the sheet has no line.

    ``of_targets``: it answers from generated code, which is the same on all machines. Then it gets
    only records of cells with a target, and all others get none of them. ``of_parts``: it gets only
    records of cells whose calls were divided, and likewise.
    """

    name: str
    title: str
    answer: Callable[[Sequence[Record]], Answer]
    of_targets: bool = False
    of_parts: bool = False


class Answered(NamedTuple):
    """A question with its answer.

    ``machine`` is empty for what is the same on all machines; ``release`` is, where no release was
    measured.
    """

    asked: Asked
    machine: str
    release: str
    answer: Answer


# In the order of the benchmarks (`matrix.QUESTIONS`), then what no benchmark asks.
QUESTIONS = (
    Asked("inference", "Does compiling a model for inference pay?", pays.inference),
    Asked("training", "Does compiling a training step pay?", pays.training),
    Asked("precision", "Does bfloat16 pay, alone and compiled?", pays.precision),
    Asked(
        "dynamic_shapes",
        "Which policy for changing shapes is the fastest, and what does it compile when?",
        ways.dynamic_shapes,
    ),
    Asked(
        "backends", "Where does the gain come from: Dynamo, AOTAutograd or Inductor?", pays.backends
    ),
    Asked("allocator", "How much of the gain comes from malloc?", pays.allocator),
    Asked("freezing", "Does freezing the weights pay, over plain torch.compile?", ways.freezing),
    Asked(
        "regional",
        "From how many equal blocks does it pay to compile only one of them?",
        ways.regional,
    ),
    Asked("starts", "How does a service start fastest?", processes.starts),
    Asked("memory", "Does the memory of a process grow with its calls?", processes.memory),
    Asked(
        "codegen",
        "What does the compiler generate for a GPU that is not here?",
        generated.codegen,
        of_targets=True,
    ),
    Asked(
        "attribution",
        "Where does the time of a compiled call go?",
        pays.attribution,
        of_parts=True,
    ),
    Asked(
        "overhead",
        "What does a compiled call cost, and which graphs are too small to gain?",
        variants.overhead,
    ),
    Asked(
        "attention",
        "Which way to write attention is the fastest when it is compiled?",
        variants.attention,
    ),
    Asked("quantisation", "Does int8 pay, alone and compiled?", variants.quantisation),
    Asked(
        "graph_breaks",
        "Do the models have the graph breaks that PyTorch's own tables list?",
        generated.graph_breaks,
        of_targets=True,
    ),
)


def names() -> list[str]:
    """The names of all questions, in their order."""
    return [asked.name for asked in QUESTIONS]


def get(name: str) -> Asked:
    """The question of that name. Raises SuiteError."""
    for asked in QUESTIONS:
        if asked.name == name:
            return asked
    raise SuiteError(f"no question {name!r}; there are: {', '.join(names())}")


def newest(
    asked: Asked, machine: str, records: Iterable[Record], releases: Sequence[str]
) -> Answered:
    """The answer of the last of ``releases`` that has a cell of the question.

    ``records`` are those of the machine, or those of cells with a target. Without a release that
    has a cell, the sentence of the last one says that nothing was measured.
    """
    if not asked.of_targets:  # of two environments the later counts; records come in that order
        records = {(one.release, one.measurement.cell): one for one in records}.values()
    of_release: dict[str, list[Record]] = {}
    for record in records:
        of_release.setdefault(record.release, []).append(record)
    for release in reversed(releases):
        found = asked.answer(of_release.get(release, []))
        if found.measured:
            return Answered(asked, machine, release, found)
    return Answered(asked, machine, releases[-1] if releases else "", asked.answer([]))
