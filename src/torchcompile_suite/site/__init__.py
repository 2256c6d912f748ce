"""The published report: data in shards, and pages whose scripts draw them.

`build.build` writes everything. ``content`` reads one machine; ``documents`` makes plain JSON of
it; ``packs`` and ``shards`` put the JSON into scripts of data; ``axis`` says whether the history is
of releases or of commits. ``assets`` has the scripts and the style, ``render`` and ``templates``
the pages, with tables for readers without scripts.

All statistics are computed here, by the functions of ``analysis``. The scripts look up, sort,
filter and draw. Pages open from any host, under any path, from the disk, and under a
Content-Security-Policy that allows no inline script and no evaluation.
"""
