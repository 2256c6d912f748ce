"""Claims about torch.compile from six documents, judged by recorded results.

``claims.toml`` holds the documents and their claims. Each module in ``documents`` holds the rules
for the claims of one document. A rule uses recorded results only.

- ``evidence``: the results of one release on one machine, looked up by cell
- ``rule``: what a rule returns, and the comparisons that rules share
- ``documents``: the rules
- ``verdicts``: from claims, rules and results to verdicts
"""

from .verdicts import RULES, Claim, Document, Judged, Verdict, judge, read, read_documents

__all__ = ["RULES", "Claim", "Document", "Judged", "Verdict", "judge", "read", "read_documents"]
