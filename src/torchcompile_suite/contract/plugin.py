"""The pytest plugin: the mark and the fixture ``compile_contract``, and ``--compile-contract``.

pytest imports this file at each start, so it imports nothing but pytest until a test counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..analysis.summary import Row
    from .counting import Counting
    from .counts import Counts
    from .file import Entry

NAME = "compile_contract"
_MARK = (
    "compile_contract(fullgraph=True, max_recompiles=1, max_graphs, max_graph_breaks, max_guards, "
    "max_kernels, max_launches, max_bytes, max_cudagraph_skips, recorded=True): limits of what "
    "torch.compile makes in the test. recorded=False: the contract's file does not count."
)
_CANNOT_TELL = f"{NAME}_cannot_tell"
# What a test has counted: an attribute of it (pytest 6 has no stash), and then of its report, which
# carries it from the process of the test to the one that writes the file.
_CARRIED = "_compile_contract"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting."""
    group = parser.getgroup(NAME, "compile contract")
    group.addoption(
        "--compile-contract",
        choices=("check", "update"),
        default="check",
        help="check the counts of torch.compile against the contract (the default), or write it",
    )
    parser.addini(
        NAME,
        "the contract's file, relative to the root (default: compile-contract.toml)",
        default="",
    )
    parser.addini(
        _CANNOT_TELL,
        "what a test of times does if its interval cannot tell: pass (with a warning) or fail",
        default="pass",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the mark."""
    config.addinivalue_line("markers", _MARK)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Warn of a mark without the fixture, which alone holds a test to it.

    Not when the test is collected: where warnings are errors, that would end the whole run.
    """
    marked = any(mark.name == NAME for mark in item.own_markers)
    if marked and NAME not in getattr(item, "fixturenames", ()):
        item.warn(pytest.PytestWarning(f"the mark {NAME} does nothing without its fixture"))


def _path(config: pytest.Config) -> Path:
    from . import file

    return config.rootpath / str(config.getini(NAME) or file.NAME)


def _name(item: pytest.Item) -> str:
    """The test's name in the contract. With --dist=loadgroup, xdist adds the group to it."""
    groups = {
        str(mark.args[0] if mark.args else mark.kwargs.get("name", "default"))
        for mark in item.iter_markers("xdist_group")
    }
    if groups and getattr(item.config.option, "loadgroup", False):
        return item.nodeid.removesuffix(f"@{'_'.join(sorted(groups))}")
    return item.nodeid


class CompileContract:
    """What a test asks: `check` for a model, `block` for any code; for times `faster_than_eager`
    and `no_slower_than`.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Read the marks of the test. The nearest one counts most."""
        self._config = request.config
        self._item = request.node
        self._limits: dict[str, object] = {}
        for mark in reversed(list(request.node.iter_markers(NAME))):
            if mark.args:
                pytest.fail(f"the mark {NAME} takes arguments by name only", pytrace=False)
            self._limits |= mark.kwargs
        self._check_names()
        self._names: list[str] = []
        self._of_fixtures: int | None = None
        self.counts: Counts | None = None
        """What the last check or block counted."""

    def _begin(self) -> None:
        """Begin a call of the test. A plugin of benchmarks calls it often, and each call's blocks
        have the same names; those of fixtures, which came before, are not counted anew.
        """
        if self._of_fixtures is None:
            self._of_fixtures = len(self._names)
        del self._names[self._of_fixtures :]

    def check(
        self, model: Any, *inputs: Any, name: str = "", backward: bool = False, **options: Any
    ) -> Counts:
        """Compile the model, call it twice with each input, and hold the counts to the contract.

        Parameters:

        - ``model``: a module or function; one that torch.compile has made is taken as it is.
        - ``inputs``: the input of one call each. A tuple is the arguments by position, a mapping
          those by name, anything else the one argument. A list has the inputs of several calls.
        - ``name``: of this way of calling, in the contract. Default: the name of the class.
        - ``backward``: compute gradients after each call.
        - ``options``: of torch.compile, such as ``mode="reduce-overhead"`` or ``dynamic=True``.

        The model and the inputs are on any device, and the test decides on eval() and no_grad().
        Fails the test if a limit of the mark or the contract does not hold. Returns the counts.
        """
        from . import calls

        given = calls.inputs_of(inputs)
        if not given:
            pytest.fail("compile_contract.check needs the inputs of at least one call", False)
        with self.block(name or getattr(model, "__name__", type(model).__name__)) as counted:
            calls.make(calls.compiled(model, options), given, backward=backward)
            # A backend other than Inductor shows no operators with their devices.
            counted.device = calls.device_of(given)
        return counted.counts

    @contextmanager
    def block(self, name: str = "block") -> Iterator[Counting]:
        """A context that counts all that its code compiles, and holds it to the contract.

        ``name``: of the block, in the contract. All that was compiled before is dropped, so
        the code compiles anew. After the context, ``counts`` of its value has the counts.
        """
        from .counting import counting

        self._names.append(name)
        often = self._names.count(name)
        with _trace_left_alone(), counting(self._config.rootpath) as counted:
            yield counted
        self.counts = counted.counts
        self._hold(f"{name} #{often}" if often > 1 else name, counted)

    def faster_than_eager(self, module: Any, inputs: Any, **options: Any) -> Row:
        """Measure the module, and fail unless it is faster compiled: see `no_slower_than`."""
        return self.no_slower_than(1.0, module, inputs, **options)

    def no_slower_than(
        self,
        baseline_ratio: float,
        module: Any,
        inputs: Any,
        *,
        cannot_tell: str = "",
        **options: Any,
    ) -> Row:
        """Measure the module in eager and compiled, in launches in turns, in new processes.

        Parameters:

        - ``baseline_ratio``: the most that compiled code may take of eager's time, such as 0.8.
        - ``module``, ``inputs`` and ``options``: of `torchcompile_suite.trial.api.compare`, such as
          ``mode``, ``training`` and ``budget_s`` (seconds, 75 by default).
        - ``cannot_tell``: "pass" (with a warning) or "fail", if the interval has the ratio inside,
          or the machine is too busy. Default: the setting ``compile_contract_cannot_tell``.

        Fails the test if the code is slower with 95 % confidence, or cannot be measured. Returns
        the figures, among them ``ratio``.
        """
        from ..errors import SuiteError

        choice = cannot_tell or self._config.getini(_CANNOT_TELL)
        if choice not in ("pass", "fail"):
            pytest.fail(f"{_CANNOT_TELL} is pass or fail, and not {choice!r}", pytrace=False)
        name = type(module).__name__
        try:
            row = measured(module, inputs, options)
        except SuiteError as error:
            pytest.fail(f"{name} cannot be measured: {error}", pytrace=False)
        found = verdict(row, baseline_ratio)
        text = told(name, row, baseline_ratio, found)
        if found is False or (found is None and choice == "fail"):
            pytest.fail(text, pytrace=False)
        if found is None:
            # Where warnings are errors, the test passes as well.
            with suppress(pytest.PytestWarning):
                self._item.warn(pytest.PytestWarning(text))
        return row

    def _hold(self, name: str, counted: Counting) -> None:
        import msgspec
        import torch

        from ..fields import Text
        from ..releases import catalogue
        from . import file, judging

        release = catalogue.minor(torch.__version__)
        counts = counted.counts
        entry = file.Entry.of(_name(self._item), name, counted.device, release, counts)
        found = judging.beyond(counts, self._limits)
        head = f"torch.compile in {name} (torch {release}, {counted.device})"
        if found:
            pytest.fail(judging.told(f"{head} is beyond the limits of its mark:", found, ""), False)
        if not self._limits.get("recorded", True):
            return
        if self._config.getoption("--compile-contract") == "update":
            try:
                msgspec.convert(entry.model, Text)
            except msgspec.ValidationError as error:
                short = "give the parameter a short id (pytest.param(..., id=...))"
                pytest.fail(f"{head}: the test's name is too long: {error}; {short}", False)
            vars(self._item).setdefault(_CARRIED, []).append(entry)
            return
        if fault := _fault(self._config, entry, head):
            pytest.fail(fault, pytrace=False)

    def _check_names(self) -> None:
        from . import judging

        known = {"fullgraph", "recorded", *judging.LIMITS}
        if unknown := sorted(self._limits.keys() - known):
            pytest.fail(
                f"the mark {NAME} has no {unknown[0]}; it has: {', '.join(sorted(known))}",
                pytrace=False,
            )
        for name in self._limits.keys() & judging.LIMITS:
            value = self._limits[name]
            if value is not None and type(value) not in (int, float):
                pytest.fail(f"{name} of the mark {NAME} is a number, and not {value!r}", False)


def _fault(config: pytest.Config, entry: Entry, head: str) -> str:
    """What the contract says against the counts; empty if it says nothing, or there is none."""
    from ..errors import SuiteError
    from . import file

    path = _path(config)
    if not path.exists():
        # One that the settings name is expected; without any, the marks alone hold.
        named = bool(config.getini(NAME))
        return f"{head}: there is no {path}, which {NAME} in pytest's settings names" * named
    try:
        return file.fault(path, entry, head, "pytest --compile-contract=update")
    except SuiteError as error:
        return str(error)


def measured(module: Any, inputs: Any, options: Mapping[str, Any]) -> Row:
    """The figures of the module in eager and compiled (`trial.api.compare`). Raises TrialError."""
    from ..trial import api

    return api.figures(api.compare(module, inputs, **options))


def verdict(row: Row, most: float) -> bool | None:
    """Whether compiled code takes at most that share of eager's time, with 95 % confidence.

    None if the interval cannot tell: it has the share inside, or the machine is too busy.
    """
    from ..measurement import TOO_BUSY

    if row.ratio is None or not row.ratio.known:
        unclear = row.outcome.ok or TOO_BUSY in row.outcome.reason
        return None if unclear else False
    if row.ratio.high <= most:
        return True
    return False if row.ratio.low > most else None


def told(name: str, row: Row, most: float, found: bool | None) -> str:
    """The verdict in one line, with the interval or the reason why there is none."""
    if row.ratio is None:
        if found is False:
            return f"{name} cannot be measured: {row.outcome}"
        figures = str(row.outcome)
    else:
        figures = f"compiled over eager {row.ratio:.3f} [95 %], at most {most:.3g} is asked for"
    yes, no = "compiling pays", "compiling does not pay"
    if most != 1:  # faster than eager is not yet as fast as was asked for
        share = f"{most:.3g} of eager's time"
        yes, no = f"compiled code takes at most {share}", f"compiled code takes more than {share}"
    if found is None:
        more = "a larger budget_s or a quieter machine may tell"
        return f"{name}: cannot tell whether {yes}: {figures}; {more}"
    return f"{name}: {yes if found else no}: {figures}"


@contextmanager
def _trace_left_alone() -> Iterator[None]:
    """A context in which pytest does not capture torch's trace.

    torch writes its trace, hundreds of records a graph, if the trace's logger has any handler. This
    logger never propagates, and newer releases of pytest add their own handlers to such loggers.
    pytest would print the whole trace below each failure.
    """
    import logging

    trace = logging.getLogger("torch.__trace")
    handlers = [each for each in trace.handlers if type(each).__module__.startswith("_pytest.")]
    for each in handlers:
        trace.removeHandler(each)
    try:
        yield
    finally:
        for each in handlers:
            trace.addHandler(each)


@pytest.fixture
def compile_contract(request: pytest.FixtureRequest) -> CompileContract:
    """Hold what torch.compile makes of a model to limits and to the contract."""
    return CompileContract(request)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Tell the fixture that the test is called."""
    contract = pyfuncitem.funcargs.get(NAME)
    if isinstance(contract, CompileContract):
        contract._begin()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Give the report what a passed test has counted: xdist sends reports to the controller."""
    outcome: Any = yield
    found = getattr(item, _CARRIED, None)
    if found and call.when == "call" and outcome.get_result().passed:
        import msgspec

        setattr(outcome.get_result(), _CARRIED, msgspec.json.encode(found).decode())


class _Writer:
    """Collects the counts in the process that the user started, and writes the file at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._told: list[str] = []
        self._written = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the report carries, from this process or from a worker."""
        if carried := getattr(report, _CARRIED, None):
            self._told.append(carried)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the contract once. Raises nothing: pytest has yet to report on the tests."""
        if not self._told:
            return
        import msgspec

        from ..errors import SuiteError
        from . import file

        entries = [
            each for told in self._told for each in msgspec.json.decode(told, type=list[file.Entry])
        ]
        try:
            self._written = file.write(_path(self._config), entries)
        except SuiteError as error:
            self._written = f"ERROR: {error}"
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was written, or why nothing was."""
        if self._written:
            terminalreporter.write_line(self._written)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Only the process that the user started writes: with xdist, that is the controller. Raises
    UsageError if the contract cannot be read: the tests would run in vain.
    """
    config = session.config
    if config.getoption("--compile-contract") == "update" and not hasattr(config, "workerinput"):
        from ..errors import SuiteError
        from . import file

        try:
            file.read(_path(config))
        except SuiteError as error:
            raise pytest.UsageError(str(error)) from None
        config.pluginmanager.register(_Writer(config), "compile-contract-writer")
