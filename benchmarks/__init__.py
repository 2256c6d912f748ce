"""The ASV benchmark classes: one file for each subject.

The suite is imported from this checkout, where it is not installed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
