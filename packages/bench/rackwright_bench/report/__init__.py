"""Runs as people see them: a table, curves, a page. Pure."""
