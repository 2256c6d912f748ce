"""Modules that are classes of a file, as a program's are, and import torch.

What torch saves of a compiled function may name the classes of a model, and cannot hold what they
close over. The other workloads define their classes in a function.
"""
