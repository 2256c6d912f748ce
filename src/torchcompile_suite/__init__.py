"""A reproducible benchmark suite for ``torch.compile``, on airspeed velocity (ASV)."""

__version__ = "0.1.0"
