"""Two releases on one machine: which figures changed beyond noise, by how much, and which time
changed.

The effect of a release on a figure is the difference of the means of logs over launches, after
minus before. Its variance has two parts.

- *Between launches*: the variance of each cell, moved towards what all cells of the machine show
  (`statistics.moderated`), because three launches say little about their own spread.
- *Between runs*: minutes later the whole machine may be slower. Launches made in a row cannot show
  this drift. Work that is repeated in many cells shows it (`DriftReference`): the same eager call
  for times, the import of the same compiler for compile costs. In a ratio the drift cancels.

Two releases that were measured in turns are compared round by round, in what drifts: the mean of
the logs of the rounds' factors. Their spread is that between rounds, and the drift cancels. In a
ratio it has cancelled before, inside the launch: its launches are compared as those of runs are,
which finds smaller changes (evidence/series.py).

False discoveries are controlled over the whole comparison, every quantity of every cell (Benjamini
and Hochberg, JRSS B 57, 1995), at `FALSE_DISCOVERY_RATE`.

- ``quantities``: what is compared, and with which drift reference
- ``drift``: the variance between runs
- ``pairing``: releases measured in turns
- ``discovery``: which differences count as changes
- ``comparison``: two releases compared
"""

from .comparison import Change, ChangeError, Comparison, compare, compare_machines, noise_floor
from .discovery import FALSE_DISCOVERY_RATE, MARGIN, Difference, Effect
from .drift import Drift, drift_between
from .pairing import SMALLEST_TOLD, told
from .quantities import QUANTITIES, SMALLEST, DriftReference, Quantity, Side, values

__all__ = [
    "FALSE_DISCOVERY_RATE",
    "MARGIN",
    "QUANTITIES",
    "SMALLEST",
    "SMALLEST_TOLD",
    "Change",
    "ChangeError",
    "Comparison",
    "Difference",
    "Drift",
    "DriftReference",
    "Effect",
    "Quantity",
    "Side",
    "compare",
    "compare_machines",
    "drift_between",
    "noise_floor",
    "told",
    "values",
]
