"""For a project's own tests and notebooks: does compiling pay for this module, is it one graph?"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .. import measurement as recorded
from ..analysis import advice
from ..analysis.remedies import remedy
from ..analysis.summary import Row, row
from ..engine.processes import import_path
from ..errors import SuiteError
from ..host import machine
from ..presentation.terminal import html
from ..results.records import Record
from . import view
from .outline import Outline
from .plan import BUDGET_S, PRECISION, Trial, TrialError, check_values
from .run import TrialResult, run
from .target import Target, workload_name

if TYPE_CHECKING:
    import torch

__all__ = ["Measurement", "Row", "TrialError", "assert_no_graph_breaks", "compare", "figures"]


class Measurement(recorded.Measurement, frozen=True):
    """What `compare` returns. A notebook shows it as a table with its verdict."""

    def _repr_html_(self) -> str:
        alone = TrialResult(Outline(), [self], interrupted=False)
        told = advice.sentence(view.rows(alone), "call compare with a longer budget_s.")
        return html([told, *view.notes(alone)], [view.table(alone)])


def compare(
    module: torch.nn.Module,
    inputs: Sequence[Any] | Mapping[str, Any] | torch.Tensor,
    *,
    mode: str = "default",
    backend: str = "inductor",
    dtype: str = "float32",
    training: bool = False,
    device: str | None = None,
    precision: float = PRECISION,
    budget_s: float = BUDGET_S,
) -> Measurement:
    """Measure the module in eager and compiled, in new processes, like ``torchcompile-suite try``.

    Parameters:

    - ``module``: any torch.nn.Module. It is copied (cloudpickle) to the new processes and moved to
      ``device`` there; the module of this process does not change.
    - ``inputs``: the inputs of one call, on the CPU: a sequence (by position), a mapping (by name)
      or a single tensor. A sequence or a mapping is the one argument where forward takes it only
      so. Tensors of any shape; the batch size is theirs.
    - ``mode``, ``backend``: of torch.compile.
    - ``dtype``: "float32"; "bfloat16" runs both in an autocast region.
    - ``training``: measure a whole optimizer step instead of the forward pass.
    - ``device``: "cpu" or "cuda". Default: "cuda" if there is a GPU.
    - ``precision``: target half-width of the interval of the time ratio, relative to the ratio.
    - ``budget_s``: seconds of measuring if the target is not reached before. Imports and the last
      launch come on top: expect one or two minutes.

    Returns all launches and the ``outcome``: a compile that fails or a wrong result is an outcome,
    not an exception. ``notes`` tells if the outputs could not be compared. `figures` returns the
    numbers.

    Raises TrialError if nothing can be measured: there is no such mode, dtype or device, the module
    cannot be copied, it does not import in another process, or torch is missing.

    Example::

        measurement = compare(torch.nn.Linear(64, 64), torch.randn(8, 64), budget_s=30)
        assert measurement.outcome.ok
        assert figures(measurement).ratio.value < 2
    """
    import cloudpickle

    name = type(module).__name__
    # Everything lies in a folder that goes away, the launches included: nobody can resume them.
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        file = Path(folder, "module.pkl")
        try:
            file.write_bytes(cloudpickle.dumps((module, inputs)))
        except Exception as error:
            raise TrialError(f"{name} cannot be copied to another process: {error}") from error
        of_class = name.lstrip("_") or "module"
        target = Target(workload_name("module", of_class), "pickle", str(file))
        try:
            trial = Trial(
                workload=target.name,
                target=target,
                modes=(mode,),
                backends=(backend,),
                # One answer; `try` also measures the default heap.
                allocators=("system",),
                dtype=dtype,
                device=device or machine.device_kind(),
                training=training,
                precision=precision,
                budget_s=budget_s,
            )
            check_values(trial)
            machine.need(trial.device)
            answer = run(
                trial,
                Path(sys.executable),
                lambda _: None,
                # The new processes must find the modules in which the classes are defined.
                variables={"PYTHONPATH": import_path(*filter(None, sys.path))},
                kept=Path(folder, "launches.jsonl"),
            )
        except SuiteError as error:
            raise TrialError(str(error)) from error
    if answer.interrupted:
        raise KeyboardInterrupt
    (measured,) = answer.measurements
    # What was found out about the model before it was measured, such as that it compiles itself.
    first, *others = measured.launches
    first = msgspec.structs.replace(first, notes=[*answer.outline.notes, *first.notes])
    fields = msgspec.structs.asdict(measured) | {"launches": [first, *others]}
    return Measurement(**fields)


def figures(measurement: recorded.Measurement) -> Row:
    """The numbers of a measurement, as `compare` returns it.

    ``eager_s`` and ``latency_s`` are seconds for one call, in eager and compiled; ``ratio`` is
    compiled over eager, so below 1 is a gain. On an accelerator, these calls follow one another;
    ``eager_single_s`` and ``single_s`` are of calls that are each waited for. Each is an interval
    (``value``, ``low``, ``high``) with 95 % confidence over launches. ``cold_compile_s`` and
    ``warm_compile_s`` are seconds, ``peak_memory_bytes`` is bytes, ``break_even_calls`` is a number
    of calls.

    A number that does not exist is None: all of them if the measurement's ``outcome`` is not ok.
    Never raises.

    Example::

        row = figures(compare(model, inputs))
        print(f"{row.latency_s.value * 1e3:.1f} ms, {row.ratio.value:.2f} of eager's time")
    """
    return row(Record("", "", "", measurement))


def assert_no_graph_breaks(
    function: Callable[..., Any] | torch.nn.Module,
    inputs: Sequence[Any] | Mapping[str, Any] | torch.Tensor,
) -> None:
    """Check that Dynamo captures the function as one graph, and leaves nothing to eager.

    Parameters:

    - ``function``: a module, or any function that torch.compile takes.
    - ``inputs``: the inputs of one call, as for `compare`, on the device of the module.

    Captures in this process. No code is generated, so this takes seconds. All earlier captures of
    this process are dropped, before and after.

    Raises AssertionError if there is a graph break, or code that Dynamo leaves to eager: it names
    the line, the reason and a remedy of each. Also if there is another number of graphs than one.

    Example::

        assert_no_graph_breaks(torch.nn.Linear(64, 64), torch.randn(8, 64))
    """
    import torch

    from ..launch.inspect import dynamo
    from ..launch.subject import apply
    from .build import arranged_inputs

    given = arranged_inputs(function, inputs) or ()
    dynamo.reset()
    compiled = torch.compile(function, backend="eager")

    def call() -> Any:
        return apply(compiled, given)

    try:
        with dynamo.GivenUp() as given_up:
            call()
        breaks = list(dict.fromkeys([*dynamo.graph_breaks(), *given_up.frames()]))
        graphs = dynamo.captures()
        why = "" if graphs or breaks else f" ({dynamo.why_uncaptured(call)})"
    finally:
        dynamo.reset()
    if breaks:
        listed = "\n".join(
            f"- {graph_break.where or 'no place known'}: {graph_break.reason}\n"
            f"  remedy: {remedy('graph-break', graph_break.reason)}"
            for graph_break in breaks
        )
        raise AssertionError(f"graph breaks: {len(breaks)}\n{listed}")
    if graphs != 1:
        raise AssertionError(f"not one graph, but {graphs}{why}")
