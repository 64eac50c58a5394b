"""The wanted state: changes, readings, releases, and paths on a host. Plain values, no I/O."""
