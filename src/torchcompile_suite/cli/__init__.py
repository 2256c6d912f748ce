"""The command line: each command has a file of its own."""
