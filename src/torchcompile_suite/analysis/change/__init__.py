"""Two releases on one machine: which figures changed beyond noise, by how much, and which time
changed.

The effect of a release on a figure is the difference of the means of logs over launches, after
minus before. The variance of each cell is moved towards what all cells of the machine show
(`statistics.moderated`), because few launches say little about their own spread.

Between two runs the whole machine may become slower or faster, and nothing in either of them shows
by how much. In a ratio this drift has cancelled inside the launch, and memory has none. Times and
compile costs are compared only if both releases were measured in turns: by the mean of the logs of
the rounds' factors, in which the drift cancels. In a ratio, rounds would only cost degrees of
freedom.

False discoveries are controlled over the whole comparison, every quantity of every cell (Benjamini
and Hochberg, JRSS B 57, 1995), at `FALSE_DISCOVERY_RATE`.

- ``quantities``: what is compared, and the drift between the measurements of one release
- ``discovery``: which differences count as changes, also of releases measured in turns
- ``comparison``: two releases compared
- ``largest``: the changes that matter most
"""

from .comparison import *
from .discovery import *
from .largest import *
from .quantities import *
