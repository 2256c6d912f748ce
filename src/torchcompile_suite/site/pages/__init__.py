"""What stands on each page: one module a question, each a function that returns its pages."""
