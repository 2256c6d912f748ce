"""host_states.py MODEL SECONDS: how much of the spread of a timm model's times do the probes of
the host explain? Of the suite it uses the C++ of the probes only. Start it with a settled heap.
"""

import ctypes
import subprocess
import sys
import tempfile
import time

import numpy
import timm
import torch

SOURCE = "src/torchcompile_suite/host/probes.cpp"
PROBES = ("hand-off", "both over one", "load")


def probe():
    found = (ctypes.c_double * 3)()
    library.probes(0, 1, found)
    return list(found)


def turn(forward):
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        forward(image)
        times.append(time.perf_counter() - start)
    return numpy.median(times[calls // 3 :])


with tempfile.NamedTemporaryFile(suffix=".so") as built:
    flags = ["-O2", "-shared", "-fPIC", "-pthread"]
    subprocess.run(["g++", *flags, SOURCE, "-o", built.name], check=True)
    library = ctypes.CDLL(built.name)
torch.manual_seed(0)
eager, image = timm.create_model(sys.argv[1]).eval(), torch.randn(1, 3, 224, 224)
compiled, calls, rows = torch.compile(eager), 3, []
with torch.inference_mode():
    turn(compiled)
    calls = max(5, int(0.1 / turn(eager)))
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        before, eager_s, middle = probe(), turn(eager), probe()
        rows.append([*numpy.add(before, middle) / 2, eager_s, turn(compiled)])
        time.sleep(0.02)
probes, eager_s, compiled_s = numpy.split(numpy.log(rows), [3, 4], axis=1)
print(f"{sys.argv[1]}, {torch.__version__}, {len(rows)} pairs of turns")
for name, each in zip(PROBES, numpy.exp(probes).T, strict=True):
    print(f"{name}: {' '.join(f'{q:.4g}' for q in numpy.quantile(each, [0.05, 0.5, 0.95]))}")
for name, times in ("eager", eager_s), ("compiled", compiled_s), ("ratio", compiled_s - eager_s):
    explained = [numpy.corrcoef(times[:, 0], each)[0, 1] ** 2 for each in probes.T]
    shares = ", ".join(f"{probe} {r2:.0%}" for probe, r2 in zip(PROBES, explained, strict=True))
    print(f"{name}: {numpy.exp(times.mean()):.4g}, spread {times.std():.1%}, explained by {shares}")
