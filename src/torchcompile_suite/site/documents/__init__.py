"""The content of the site's documents: one module for each kind.

Each makes plain JSON from the results of one machine. A `packs.table` is ``{"columns": [...],
"rows": [[...]]}``. Numbers are rounded by `packs.figure`; units are part of the names.

- ``figures``: the figures of every cell of a point; every cell over the points
- ``overview``: what the landing page says of a point; geometric means over the points
- ``pairs``: two points compared
- ``fastest``: the fastest mode and release of each model
- ``launches``: every launch of a point, and what the compiler made
- ``answers``: what people ask and the claims of documents, answered by a point; noise, coverage and
  failures of a machine
- ``generated``: what was generated for targets; the same on all machines
"""
