"""Errors of the suite as errors of ASV, which prints them in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from asv import util

from ..errors import SuiteError
from ..presentation.wording import printable


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors that the user can fix into ASV's `UserError`."""
    try:
        yield
    except SuiteError as error:
        raise util.UserError(printable(str(error))) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise util.UserError(printable(f"{where}{error.strerror or error}")) from None
