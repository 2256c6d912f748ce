"""ASV's identity of a machine, replaced by ours, which stays the same for years."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv import util
from asv.machine import Machine, MachineCollection

from ..host import machine
from ..measuring.settings import RESULTS_VARIABLE
from ..results import asv_files
from .errors import user_errors


def load(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Machine.load`, with this machine's stable identity instead of questions.

    A description that the user gave to ``asv machine`` still wins. Without one,
    ``~/.asv-machine.json`` is neither read nor written.
    """

    def load(cls: type[Machine], *, machine_name: str | None = None, **options: Any) -> Machine:
        described = options.get("force_interactive") or any(
            name in options for name, _ in cls.fields
        )
        if machine_name is not None and not described:
            described = _is_described(machine_name, options.get("_path"))
        with user_errors():
            here = machine.detect(machine_name)
        if described:
            loaded = original(cls, machine_name=machine_name, **options)
            # ASV's own description has no device, and CPU and GPU must not share a series.
            loaded.__dict__.setdefault("device", here.device)
        else:
            loaded = cls()
            loaded.__dict__.update(here._asdict())
        return loaded

    return load


def _is_described(name: str, path: str | None) -> bool:
    try:
        MachineCollection.load(name, _path=path)
    except util.UserError:
        return False
    return True


def save(_original: Callable[..., Any]) -> Callable[..., Any]:
    """`Machine.save`, which keeps the fields of a machine's first run for ever.

    ASV begins a new series when one of them changes. This is also the first place that knows the
    run's results folder, so the benchmarks get its path here.
    """

    def save(self: Machine, results_dir: str) -> None:
        folder = Path(results_dir).resolve() / self.machine
        file = folder / machine.FILE
        if file.exists():
            try:
                recorded = asv_files.read_object(file)
            except ValueError as error:
                raise util.UserError(
                    f"{file} {error}; restore it, for instance with git checkout"
                ) from None
            with user_errors():
                machine.check_same(recorded, self.__dict__)
            recorded.pop("version", None)
            self.__dict__.update(recorded)
        else:
            util.write_json(str(file), self.__dict__, self.api_version)
        os.environ[RESULTS_VARIABLE] = str(folder)

    return save


def get_defaults(_original: Callable[..., Any]) -> Callable[..., Any]:
    """`Machine.get_defaults`, which ``asv machine`` offers."""
    return lambda: machine.detect()._asdict()
