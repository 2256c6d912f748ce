"""Statistics of recorded times: pure functions. Only `prior_spread` needs SciPy.

The unit is the launch, not the call. Calls of one process share its memory layout, its code
addresses and its neighbours, so their spread says little about the next process. For
mobilenetv2_100 at batch 4, one process gives the ratio within 1-2 %; between processes the ratio
varied by 4.5 %. See Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.

- ``intervals``: confidence intervals over launches, arithmetic with them, how much the launches of
  all cells of a machine differ, and quantiles of Student's t distribution
- ``one_launch``: the figures of one launch
- ``disturbances``: which launches count: what others took of the machine, and where the host ran
  its processors
- ``launches``: the figures of a measurement, and the stopping rule
"""

from .disturbances import *
from .intervals import *
from .launches import *
from .one_launch import *
