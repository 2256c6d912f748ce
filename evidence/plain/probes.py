"""How long does Inductor ask which vector instructions the CPU has? Run it twice: cold, then warm.

Prints seconds of the question and the child processes started for it, then seconds of a compile.
"""

import subprocess
import time

import torch

try:
    from torch._inductor import cpu_vec_isa as home
except ImportError:  # 2.4
    from torch._inductor import codecache as home

commands = []
start_process = subprocess.Popen.__init__


def counted(self, command, *arguments, **options):
    commands.append(command)
    start_process(self, command, *arguments, **options)


subprocess.Popen.__init__ = counted
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).eval())
begun = time.perf_counter()
chosen = home.pick_vec_isa()
asked = time.perf_counter()
with torch.no_grad():
    model(torch.ones(8, 64))
print(
    *(torch.__version__, chosen, f"asks {asked - begun:.2f} s, {len(commands)} processes,"),
    f"then first call {time.perf_counter() - asked:.2f} s",
)
