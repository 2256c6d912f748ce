"""Measurements of a cell: settings, sessions, launches, and the processes that they run in."""
