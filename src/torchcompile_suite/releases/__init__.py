"""PyTorch releases: their catalogue, their locks, their environments and the git ledger."""
