"""The content of the pages: one module for each question; its ``pages`` returns the pages."""
