"""A run as people see it: while it runs, and afterwards."""
