"""The evidence for docs/method.md: scripts that measure, and the tables that they write.

``nox -s evidence -- NAME`` runs one script; without a name, nox lists them. A script measures what
is missing, keeps it beside itself, and writes its table to the terminal and into
evidence/README.md. ``python -m evidence.NAME --kept`` measures nothing: it makes the table from the
kept data.
"""
