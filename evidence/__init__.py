"""The measured evidence behind docs/method.md: scripts that measure, and scripts that print tables.

``nox -s evidence -- NAME`` runs one; without a name it lists them.
"""
