"""The suite's version. A launch records it and imports only this module for it."""

__version__ = "0.1.0"
