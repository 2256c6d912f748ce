"""What pytest prints of failing tests."""

from __future__ import annotations

import re

from torchcompile_suite.contract import judging

_RULE = re.compile(r"^[_=]{2,} .+? [_=]{2,}$", re.MULTILINE)


def failures(output: str) -> list[str]:
    """What stands below the name of each failing test, but for what the test printed itself.

    Each must be short, and have nothing of torch's trace.
    """
    listed = output.partition("= FAILURES =")[2]
    texts = [text.strip() for text in _RULE.split(listed)[1:]]
    found = [text for text in texts if text.startswith("torch.compile in ")]
    for text in found:
        message = text.partition("\n---")[0]
        assert len(message.splitlines()) <= judging.MOST_LINES, text
        assert "torch.__trace" not in text, text
    return found
