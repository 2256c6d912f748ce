"""A reproducible benchmark suite for ``torch.compile``, on airspeed velocity (ASV).

For a project's own tests: `compare`, `figures` and `assert_no_graph_breaks`. `compare` returns a
`Measurement` or raises `TrialError`; `figures` returns a `Row`. For notebooks: `compare_releases`
returns a `Comparison`; both are shown as tables.
"""

from __future__ import annotations

import os
import sys

# Python 3.10 does not know this variable. As in 3.11, the current folder is then not on the import
# path: a user's profile.py must not hide the module that torch imports.
if sys.version_info < (3, 11) and os.environ.get("PYTHONSAFEPATH"):
    if sys.path[:1] in ([""], [os.getcwd()]):  # noqa: PTH109 - there may be a pathlib.py, too
        del sys.path[0]

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .cli.api import Comparison, compare_releases
    from .trial.api import (
        Measurement,
        Row,
        TrialError,
        assert_no_graph_breaks,
        compare,
        figures,
    )

__all__ = [
    "Comparison",
    "Measurement",
    "Row",
    "TrialError",
    "__version__",
    "assert_no_graph_breaks",
    "compare",
    "compare_releases",
    "figures",
]


def __getattr__(name: str) -> Any:
    # Imported at the first use, because all measuring processes import this package without them.
    if name in ("Comparison", "compare_releases"):
        from .cli import api as of_results

        return getattr(of_results, name)
    if name in __all__:
        from .trial import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
