"""How results are written: words, tables, JSON, the terminal."""
