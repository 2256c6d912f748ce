"""The ASV benchmark classes: one file for each subject.

ASV imports this package in each release's environment, where the suite is not installed. The suite
is imported from this checkout.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
