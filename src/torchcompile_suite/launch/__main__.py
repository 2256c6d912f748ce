"""``python -m torchcompile_suite.launch``: a `cell.Request` on stdin, a `cell.Launch` on stdout.

    echo '{"cell": {"workload": "resnet18", "batch_size": 1, "mode": "default"},
           "kind": "cold", "cache_dir": "/tmp/cache", "schema": 1}' |
    python -m torchcompile_suite.launch

``--die-with-parent`` ends this process when its parent process ends. The output of torch and of
compilers goes to stderr. The exit status is 0 if a launch was written, with any outcome, and 2 if
the request cannot be read.
"""

from __future__ import annotations

import os
import sys

import msgspec

from ..host.orphans import die_with_parent
from .entry import prepare, run


def main() -> int:
    """Read, measure, write."""
    if "--die-with-parent" in sys.argv[1:]:
        die_with_parent()
    # From now on output to descriptor 1, also from C++ libraries, must not mix with the JSON.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        request = prepare(sys.stdin.buffer.read())
    except msgspec.DecodeError as error:
        print(f"torchcompile_suite.launch: not a request: {error}", file=sys.stderr)
        return 2
    answer.write(run(request, "fresh") + b"\n")
    answer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
