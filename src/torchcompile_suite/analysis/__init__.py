"""Pure functions of the table of records: what the numbers mean."""
