"""A run as people see it: while it goes on, and afterwards."""
