"""The content of the site's documents: one module for each kind.

Each makes plain JSON from the results of one machine. A ``table`` is ``{"columns": [...],
"rows": [[...]]}``. Numbers are rounded by `packs.figure`; units are part of the names.

- ``figures``: the figures of every cell of a point
- ``lines``: every cell over the points
- ``overview``: what the landing page says of a point
- ``means``: geometric means over the points
- ``pairs``: two points compared
- ``launches``: every launch of a point, and what the compiler made
- ``claims``, ``trust``: the claims of documents; noise, coverage and failures
- ``answers``: what people ask, answered by a point
- ``generated``: what was generated for targets; the same on all machines
"""
