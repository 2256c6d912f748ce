"""The one kind of error that users can mend themselves."""


class SuiteError(Exception):
    """Its message is one line that names the fault and the remedy; no traceback is due."""
