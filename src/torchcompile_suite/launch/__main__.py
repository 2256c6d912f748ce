"""``python -m torchcompile_suite.launch --connection FD``: one measuring process of a launch.

`engine.launches` starts it, and talks with it over the inherited file descriptor FD. To make a
whole launch from a script: ``python -m torchcompile_suite.engine.launches``. The output of torch
and of compilers goes where stdout and stderr of this process go.
"""

from __future__ import annotations

from .connection import accept
from .entry import work

if __name__ == "__main__":
    work(accept(), "fresh")
