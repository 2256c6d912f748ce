"""The computer: which machine it is, its allocators, its files, its processes' lifetime."""
