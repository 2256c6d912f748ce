"""``torchcompile-suite``, and ``python -m torchcompile_suite``."""

from __future__ import annotations

import sys

from .errors import SuiteError


def main() -> None:
    """Run the command. If a workload file cannot be used, print one line and exit."""
    try:
        from .cli.app import app
    except SuiteError as error:
        sys.exit(f"torchcompile-suite: {error}")
    app()


if __name__ == "__main__":
    main()
