"""The suite's version, in a module of its own: a launch records it and needs nothing else here."""

__version__ = "0.1.0"
