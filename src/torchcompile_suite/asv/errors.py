"""Errors of the suite as errors of ASV, which prints them in one line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from asv import util
from asv.console import log

from ..errors import SuiteError
from ..presentation.wording import printable


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors that the user can fix into ASV's `UserError`."""
    try:
        yield
    except re.error as error:
        text = f"{error.pattern!r} is no regular expression: {error}"
        raise util.UserError(printable(text)) from None
    except SuiteError as error:
        raise util.UserError(printable(str(error))) from None
    except KeyboardInterrupt:
        log.error("interrupted; run the same command again")
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise util.UserError(printable(f"{where}{error.strerror or error}")) from None
