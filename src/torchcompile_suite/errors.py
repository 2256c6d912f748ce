"""Base class of the errors that the user can fix."""


class SuiteError(Exception):
    """The message is one line with the fault and the remedy. It is shown without a traceback."""


def cannot_write(error: OSError, place: object, remedy: str) -> SuiteError:
    """What to raise for ``error``. ``place`` is named if the error names no file."""
    return SuiteError(f"cannot write {error.filename or place}: {error.strerror}; {remedy}")
