"""The ways to a host: commands, files, and jobs that the host runs alone."""
