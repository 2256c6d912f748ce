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

- ``quantities``: what is compared, with which drift reference, and the variance between runs
- ``discovery``: which differences count as changes, also of releases measured in turns
- ``comparison``: two releases compared
- ``findings``: the changes that matter most
"""

from .comparison import *
from .discovery import *
from .findings import *
from .quantities import *
