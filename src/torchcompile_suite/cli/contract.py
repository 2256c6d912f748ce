"""``torchcompile-suite contract``: what torch.compile makes of a model, kept in a file."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Annotated

import click
import msgspec

from .. import targets
from ..cell import MOST_BATCH
from ..contract import factory, file, markdown
from ..contract.file import Entry
from ..errors import SuiteError, refuse
from ..launch.messages import TARGET_VARIABLE
from ..presentation.wording import printable
from ..releases import catalogue
from ..trial import target
from .app import Commands, missing
from .options import PATH, batch_sizes_option, target_option

app = Commands(
    "contract", help="Keep a model compiled: its graphs, breaks, recompiles and kernels in a file."
)

file_option = click.option(
    "--file", "path", type=PATH, default=Path(file.NAME), help="The contract."
)
releases_option = click.option(
    "--release",
    "releases",
    multiple=True,
    help="A release to install, such as v2.9; newest; or installed, the torch of this Python and "
    "the default. Repeat the option for several.",
)
_INSTALLED = "installed"
_EXAMPLE = "my_model.py:make"
_NEWEST = "newest"


@app.command("update")
@click.argument(
    "models", nargs=-1, required=True, help="path/file.py:factory or package.module:factory."
)
@file_option
@click.option("--mode", default="default", help="Mode of torch.compile.")
@click.option("--backend", default="inductor", help="Backend of torch.compile.")
@batch_sizes_option
@click.option("--dynamic", is_flag=True, help="torch.compile(dynamic=True).")
@click.option(
    "--training",
    is_flag=True,
    help="With gradients; train() or eval() stays as the factory set it.",
)
@click.option("--device", default="cpu", help="cpu or cuda.")
@target_option
@releases_option
def update_command(
    models: tuple[str, ...],
    path: Path,
    mode: str,
    backend: str,
    batch_sizes: tuple[int, ...],
    dynamic: bool,
    training: bool,
    device: str,
    gpu: str | None,
    releases: tuple[str, ...],
) -> None:
    """Count what torch.compile makes of the models, and write it to the contract.

    Examples:

    torchcompile-suite contract update my_model.py:make

    torchcompile-suite contract update my_model.py:make --target cuda:sm90
    """
    if device in targets.read():
        raise SuiteError(f"{device} is not here: write --target {device}")
    if gpu is not None:
        refuse({"--device": device != "cpu"}, f"--target {gpu} is the device")
    wanted = device if gpu is None else targets.get(gpu).name
    way = _Way(mode, backend, batch_sizes, dynamic, training, wanted)
    file.read(path)  # a contract that cannot be read would make the counts useless
    names = [_named(text, path) for text in models]
    # The models are called there. Without the folder, the contract is a new one.
    path.resolve().parent.mkdir(parents=True, exist_ok=True)
    each_release = releases or (_INSTALLED,)
    entries = [_counted(name, path, way, release) for release in each_release for name in names]
    click.echo(file.write(path, entries))


@app.command("check")
@click.argument("models", nargs=-1, help="As for update. Default: all of the contract.")
@file_option
@releases_option
@click.option(
    "--device",
    "devices",
    multiple=True,
    help="Only entries of this device, such as cpu or cuda:sm90. Default: all.",
)
@click.option(
    "--markdown",
    "summary",
    type=PATH,
    help="Write a summary for people here: counts and differences.",
)
def check_command(
    models: tuple[str, ...],
    path: Path,
    releases: tuple[str, ...],
    devices: tuple[str, ...],
    summary: Path | None,
) -> None:
    """Count again, and say what differs from the contract: exit status 1 if anything does.

    Examples:

    torchcompile-suite contract check --release v2.9

    torchcompile-suite contract check --release installed --release newest --markdown contract.md
    """
    if not path.is_file():
        raise SuiteError(f"there is no {path}; make it: {_update(_EXAMPLE, path)}")
    entries = file.read(path).entries
    # That of a test has two colons.
    known = {entry.key: None for entry in entries if "::" not in entry.model}
    names = {_named(text, path): text for text in models}
    for name, text in names.items():
        if "::" in text:
            raise SuiteError(f"{text} is a test: check it with pytest")
        if name not in {model for model, _, _ in known}:
            raise SuiteError(f"{path.name} has no entry for {name}; add it: {_update(text, path)}")
    if not entries:
        raise SuiteError(f"{path.name} has no entry; add one: {_update(_EXAMPLE, path)}")
    if not known:
        raise SuiteError(f"{path.name} has only entries of tests; check them with pytest")
    if unknown := set(devices).difference(device for _, _, device in known):
        raise SuiteError(f"{path.name} has no entry for {', '.join(sorted(unknown))}")
    wanted = [
        key
        for key in known
        if (not names or key[0] in names) and (not devices or key[2] in devices)
    ]
    if not wanted:
        raise SuiteError(f"{path.name} has no such entry for {', '.join(devices)}")
    found = [_checked(path, *key, each) for each in releases or (_INSTALLED,) for key in wanted]
    if summary is not None:
        markdown.write(summary, found)
    if any(each.fault for each in found):
        raise SystemExit(1)


def _checked(path: Path, model: str, call: str, device: str, release: str) -> markdown.Checked:
    """Count, and say whether the contract is kept. What cannot be counted is a fault."""
    try:
        way = _Way.read(call, device)
        entry = _counted(model, path, way, release)
    except (SuiteError, ModuleNotFoundError) as error:
        why = str(error)
        if isinstance(error, ModuleNotFoundError):
            why = missing(error, "contract --release")
        elif release != _INSTALLED and re.search("No module named|there is no module", why):
            why += (
                " (the environment of a release has torch, torchvision, timm and numpy: put other "
                "modules on PYTHONPATH, or check with --release installed)"
            )
        click.echo(printable(why), err=True)
        return markdown.Checked(model, call, device, release, None, why)
    head = f"{model} ({call}, torch {entry.torch[0]}, {device})"
    of_release = "" if release == _INSTALLED else f" --release {release}"
    command = f"{_update(_from_here(model, path), path)}{way.options()}{of_release}"
    fault = file.fault(path, entry, head, command)
    lines = (fault or f"{head}: as in the contract").splitlines()
    click.echo("\n".join(map(printable, lines)))
    return markdown.Checked(model, call, device, entry.torch[0], entry.counts, fault)


class _Way(msgspec.Struct, frozen=True):
    """A way of calling: the options of ``update``, and how the contract writes them.

    ``device``: a kind, or a target.
    """

    mode: str = "default"
    backend: str = "inductor"
    batch_sizes: tuple[Annotated[int, msgspec.Meta(ge=1, le=MOST_BATCH)], ...] = ()
    dynamic: bool = False
    training: bool = False
    device: str = "cpu"

    def __str__(self) -> str:
        return self.mode + self.options(device=False, mode=False)

    def options(self, *, device: bool = True, mode: bool = True) -> str:
        """The options that are not the usual ones, as a command line has them."""
        kind = "target" if self.device in targets.read() else "device"
        parts = [
            *([f"--mode {self.mode}"] if mode and self.mode != "default" else []),
            *([f"--backend {self.backend}"] if self.backend != "inductor" else []),
            *(f"--batch-size {size}" for size in self.batch_sizes),
            *(["--dynamic"] if self.dynamic else []),
            *(["--training"] if self.training else []),
            *([f"--{kind} {self.device}"] if device and self.device != "cpu" else []),
        ]
        return "".join(f" {part}" for part in parts)

    @classmethod
    def read(cls, text: str, device: str) -> _Way:
        """The way that `__str__` has written. Raises SuiteError."""
        values: dict[str, object] = {"device": device}
        sizes: list[int] = []
        rest = iter(text.split())
        try:
            values["mode"] = mode = next(rest)
            if mode.startswith("-"):
                raise ValueError(mode)
            for word in rest:
                if word == "--backend":
                    values["backend"] = next(rest)
                elif word == "--batch-size":
                    sizes.append(int(next(rest)))
                elif word in ("--dynamic", "--training"):
                    values[word.removeprefix("--")] = True
                else:
                    raise ValueError(word)
            return msgspec.convert({**values, "batch_sizes": tuple(sizes)}, cls)
        except (ValueError, StopIteration):
            raise SuiteError(f"the contract has no such way to call: {text!r}; update it") from None

    def compile_options(self) -> dict[str, object]:
        """The arguments of torch.compile that are not the usual ones."""
        given = {name: getattr(self, name) for name in ("mode", "backend", "dynamic")}
        return {name: value for name, value in given.items() if value != getattr(_Way(), name)}


def _no_model(text: str) -> SuiteError:
    return SuiteError(
        f"{text!r} names no model of yours; give path/file.py:factory or package.module:factory"
    )


def _named(text: str, path: Path) -> str:
    """The model as the contract names it: a file's path is relative to the contract."""
    where, colon, name = text.rpartition(":")
    if not colon:
        raise _no_model(text)
    if not where.endswith(".py"):
        return text
    folder = path.resolve().parent
    return f"{Path(os.path.relpath(Path(where).resolve(), folder)).as_posix()}:{name}"


def _from_here(model: str, path: Path) -> str:
    """The model of the contract as the command line names it: `_named`, the other way round."""
    where, _, name = model.rpartition(":")
    if not where.endswith(".py"):
        return model
    return f"{Path(os.path.relpath(path.resolve().parent / where)).as_posix()}:{name}"


def _update(text: str, path: Path) -> str:
    """The command that adds the model to the contract."""
    of_file = [] if path == Path(file.NAME) else ["--file", str(path)]
    return shlex.join(["torchcompile-suite", "contract", "update", text, *of_file])


def _release(name: str) -> catalogue.Release | None:
    """None for the torch of this Python. Raises SuiteError."""
    if name == _INSTALLED:
        return None
    return catalogue.newest() if name == _NEWEST else catalogue.find(name)


def _counted(name: str, path: Path, way: _Way, release: str) -> Entry:
    """Count in a new process. Raises SuiteError if the model cannot be built or called.

    ``name``: of the model, as the contract has it.
    """
    # Imported here: the help waits for none of it.
    from ..engine import processes
    from ..engine.settings import Settings
    from ..presentation.terminal import Progress
    from ..trial.run import python_of

    folder = path.resolve().parent
    where, _, made = name.rpartition(":")
    place = f"{folder / where}:{made}" if where.endswith(".py") else name
    wanted = target.parse(place)
    if not isinstance(wanted, target.Target) or wanted.kind not in ("file", "module"):
        raise _no_model(name)
    at_target = way.device in targets.read()
    say = Progress().say
    python = python_of(_release(release), "cpu" if at_target else way.device, say)
    say(f"{name} ({way}, {way.device}): counting")
    order = factory.Order(
        wanted,
        str(folder),
        way.batch_sizes,
        way.compile_options(),
        way.training,
        way.device,
    )
    # A module is looked for beside the contract, then here.
    found = {"PYTHONPATH": processes.import_path(folder, Path.cwd())}
    variables = target.variables() if wanted.kind == "file" else found
    if at_target:
        variables = {**variables, TARGET_VARIABLE: way.device}
    environment = processes.Environment(python, variables)
    limit_s = Settings.from_environment().launch_limit_s
    try:
        counted = processes.asked(environment, factory.MODULE, order, limit_s, factory.Counted)
    except SuiteError as error:
        raise SuiteError(f"{name} cannot be counted: {error}") from None
    if counted.counts is None:
        raise SuiteError(counted.error)
    return Entry.of(name, str(way), way.device, counted.torch, counted.counts)
