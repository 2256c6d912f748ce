"""For a project's own tests: does compiling pay for this module, and is it one graph?"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis import advice
from ..analysis.summary import Row, row
from ..cell import Measurement
from ..host import machine
from ..measuring import interpreter
from ..results.records import Record
from .plan import BUDGET_S, Trial, TrialError
from .run import run
from .target import Target

if TYPE_CHECKING:
    import torch


def compare(
    module: torch.nn.Module,
    inputs: Sequence[Any] | Mapping[str, Any] | torch.Tensor,
    *,
    mode: str = "default",
    backend: str = "inductor",
    dtype: str = "float32",
    training: bool = False,
    device: str | None = None,
    precision: float = 0.03,
    budget_s: float = BUDGET_S,
) -> Measurement:
    """Measure the module in eager and compiled, in new processes, as ``torchcompile-suite try``.

    ``inputs`` are those of one call, tensors of any shape on the CPU: a sequence by position, a
    mapping by name, or the one tensor. The module is copied (cloudpickle) and moved to ``device``
    (``cpu`` or ``cuda``; else what there is) in the new processes; this one stays as it was.
    ``dtype`` is float32 or that of an autocast region. The launches go on until the interval of
    the time ratio reaches ``precision`` (relative) to either side, or for ``budget_s`` seconds;
    expect a minute or two.

    A compile that fails, or gives wrong results, is the measurement's ``outcome``; `figures` has
    the numbers. Raises `TrialError` where nothing can be measured: the module cannot be copied, or
    there is no torch.
    """
    import cloudpickle

    given = (inputs,) if not isinstance(inputs, Sequence | Mapping) else inputs
    given = dict(given) if isinstance(given, Mapping) else tuple(given)
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        file = Path(folder, "module.pkl")
        try:
            file.write_bytes(cloudpickle.dumps((module, given)))
        except Exception as error:
            name = type(module).__name__
            raise TrialError(f"{name} cannot be copied to another process: {error}") from error
        name = type(module).__name__.lstrip("_") or "module"
        target = Target(f"module.{name}", "pickle", str(file))
        trial = Trial(
            workload=target.name,
            target=target,
            modes=(mode,),
            backends=(backend,),
            dtype=dtype,
            device=device or machine.device_kind(),
            training=training,
            precision=precision,
            budget_s=budget_s,
        )
        answer = run(
            trial,
            Path(sys.executable),
            lambda _: None,
            # Whatever the module was defined in must be found there, too.
            variables={
                "PYTHONPATH": os.pathsep.join([str(interpreter.SOURCE), *filter(None, sys.path)])
            },
        )
    (measurement,) = answer.measurements
    return measurement


def figures(measurement: Measurement) -> Row:
    """The numbers of a measurement: seconds a call in eager and compiled and their ratio, each with
    its 95 % interval over processes; compile costs in seconds; None where there is no number.
    """
    return row(Record("", "", "", measurement))


def assert_no_graph_breaks(
    function: Callable[..., Any] | torch.nn.Module,
    inputs: Sequence[Any] | Mapping[str, Any] | torch.Tensor,
) -> None:
    """Raise AssertionError where Dynamo breaks the graph, naming each place, reason and remedy.

    ``inputs`` are those of one call, as for `compare`. Captures in this process, without
    generating code (torch._dynamo.explain), and forgets what was captured before.
    """
    import torch._dynamo

    from ..launch.inspect import versions

    torch._dynamo.reset()
    explain = torch._dynamo.explain(function)
    if isinstance(inputs, Mapping):
        found = explain(**inputs)
    elif isinstance(inputs, Sequence):
        found = explain(*inputs)
    else:
        found = explain(inputs)
    torch._dynamo.reset()
    breaks = [versions.graph_break(each) for each in found.break_reasons]
    if breaks:
        said = "\n".join(
            f"- {each.where}: {each.reason}\n  remedy: {advice.break_remedy(each)}"
            for each in breaks
        )
        raise AssertionError(f"graph breaks: {len(breaks)}\n{said}")
