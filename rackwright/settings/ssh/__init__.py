"""SSH's own configuration: options, files, and the keys of hosts."""
