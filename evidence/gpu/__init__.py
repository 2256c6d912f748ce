"""What a lent GPU is asked: README.md says how."""
