"""ASV's identity of a machine, replaced by ours, which stays the same for years."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from asv import util
from asv.machine import Machine, MachineCollection

from ..host import machine
from .errors import user_errors


class StableMachine(Machine):  # type: ignore[misc]
    """A machine whose fields are for ever those of its first run.

    ASV begins a new series when one of them changes.
    """

    def save(self, results_dir: str) -> None:
        """See `Machine.save`. Another machine of the same name is refused."""
        here = {**self.__dict__, "version": self.api_version}
        with user_errors():
            recorded = machine.keep(Path(results_dir) / self.machine, here)
        recorded.pop("version", None)
        self.__dict__.update(recorded)


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
            with suppress(util.UserError):
                MachineCollection.load(machine_name, _path=options.get("_path"))
                described = True
        here = machine.detect(machine_name)
        if described:
            loaded = original(cls, machine_name=machine_name, **options)
            loaded.__class__ = StableMachine
            # ASV's own description has no device, and CPU and GPU must not share a series.
            loaded.__dict__.setdefault("device", here.device)
        else:
            loaded = StableMachine()
            loaded.__dict__.update(here._asdict())
        return loaded

    return load
