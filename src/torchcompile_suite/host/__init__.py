"""The computer: its identity, allocators, safe file writes, and the lifetime of processes."""
