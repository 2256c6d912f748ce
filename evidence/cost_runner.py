"""``python -m evidence.peers.ours``: a session of the suite measures one cell.

Reads the cell from standard input and prints the measurement, both as JSON.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from torchcompile_suite.cell import Cell
from torchcompile_suite.measuring.session import Session
from torchcompile_suite.measuring.settings import Settings

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        cell = msgspec.json.decode(sys.stdin.buffer.read(), type=Cell)
        measurement = Session(Path(folder), Settings()).measure(cell)
        sys.stdout.buffer.write(msgspec.json.encode(measurement))
