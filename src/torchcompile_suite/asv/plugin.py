"""The plugin that ASV loads (``plugins`` in asv.conf.json).

ASV finds our repositories, environments and the publisher as subclasses of its own. `setup` applies
the table of patches.
"""

from __future__ import annotations

import os

from asv.machine import Machine

from ..host import machine, programs
from .errors import user_errors

with user_errors():  # a workload file of the user's may not be usable
    from .. import workloads
    from . import patches  # and with them the classes that ASV looks up


def setup() -> None:
    """Prepare this process. ASV calls it once, in the folder of its configuration."""
    with user_errors():
        if files := workloads.listed_files():
            os.environ[workloads.VARIABLE] = files
        Machine.hardcoded_machine_name = machine.shown_first()
    programs.stop_in_order()
    patches.apply()
