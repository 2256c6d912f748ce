"""The compiler's own modules. Importing this one imports them, and says how long that took.

torch imports Inductor at the first compiled call: three seconds that every process of a user pays
once. They are part of its compile cost, and told apart from compiling itself.
"""

from __future__ import annotations

import importlib
import time

importlib.import_module("torch")  # which a model needs anyway: its time is not the compiler's
_start = time.perf_counter()
importlib.import_module("torch._inductor.compile_fx")
IMPORT_S = round(time.perf_counter() - _start, 4)
