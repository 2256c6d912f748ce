"""Base class of the errors that the user can fix."""


class SuiteError(Exception):
    """The message is one line with the fault and the remedy. It is shown without a traceback."""
