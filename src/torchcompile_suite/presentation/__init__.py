"""How findings are written: words, tables, JSON, the terminal."""
