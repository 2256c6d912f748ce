"""Models of strangers; see `evidence.strangers`."""
