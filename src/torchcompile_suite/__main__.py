"""``torchcompile-suite``, and ``python -m torchcompile_suite``."""

from __future__ import annotations

from .cli.app import app


def main() -> None:
    """Run the command."""
    app(prog_name="torchcompile-suite")


if __name__ == "__main__":
    main()
