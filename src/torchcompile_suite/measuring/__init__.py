"""Measurements of a cell: settings, sessions, and the processes that launches run in."""
