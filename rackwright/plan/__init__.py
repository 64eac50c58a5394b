"""What is to be: changes, readings, releases, and where things lie on a host. Plain values, no I/O."""
