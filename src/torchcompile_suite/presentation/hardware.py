"""Names of machines that people use: "AMD EPYC Milan, 2 cores, 24 GB".

Clouds hide the name of the processor, but its family and model tell the generation. The numbers are
those of CPUID, as in the Linux kernel's ``arch/x86/include/asm/intel-family.h`` and in AMD's
processor programming references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# (family, first model, last model) -> the generation.
_GENERATIONS = {
    (23, 0x00, 0x0F): "Naples",
    (23, 0x30, 0x3F): "Rome",
    (25, 0x00, 0x0F): "Milan",
    (25, 0x10, 0x1F): "Genoa",
    (25, 0xA0, 0xAF): "Bergamo",
    (26, 0x00, 0x0F): "Turin",
    (26, 0x10, 0x1F): "Turin Dense",
    (6, 0x3F, 0x3F): "Haswell",
    (6, 0x4F, 0x4F): "Broadwell",
    (6, 0x55, 0x55): "Skylake or Cascade Lake",
    (6, 0x6A, 0x6A): "Ice Lake",
    (6, 0x6C, 0x6C): "Ice Lake",
    (6, 0x8F, 0x8F): "Sapphire Rapids",
    (6, 0xCF, 0xCF): "Emerald Rapids",
    (6, 0xAD, 0xAE): "Granite Rapids",
    (6, 0xAF, 0xAF): "Sierra Forest",
}
_FAMILY = re.compile(r"\s*\(family (\d{1,4}) model (\d{1,4})\)", re.ASCII)
# Other processors of these families are sold under other names and have other generations.
_SERVERS = re.compile(r"EPYC|Xeon", re.IGNORECASE)
_LONGEST = 120


def title(facts: Mapping[str, str], otherwise: str) -> str:
    """The machine in words, from the fields of its machine.json; ``otherwise`` without a processor.

    An accelerator that was measured comes first. The text may come from a stranger.
    """
    cpu = facts.get("cpu", "")[:_LONGEST].strip()
    device = facts.get("device", "")[:_LONGEST].strip()
    parts = [device if device not in ("", "cpu") else "", _processor(cpu) if cpu else ""]
    cores, memory = facts.get("num_cpu", ""), facts.get("ram", "")
    if cores.isdecimal():
        parts.append("1 core" if cores == "1" else f"{cores[:6]} cores")
    if memory:
        parts.append(memory[:_LONGEST].replace("GiB", "GB"))
    return ", ".join(filter(None, parts)) if any(parts[:2]) else otherwise


def _processor(cpu: str) -> str:
    found = _FAMILY.search(cpu)
    name = re.sub(r"\s+Processor\b", "", _FAMILY.sub("", cpu)).strip()
    if found is None or not _SERVERS.search(name):
        return name
    family, model = int(found[1]), int(found[2])
    generation = next(
        (
            known
            for (its_family, first, last), known in _GENERATIONS.items()
            if family == its_family and first <= model <= last
        ),
        "",
    )
    return f"{name} {generation}" if generation else f"{name} (family {family} model {model})"
