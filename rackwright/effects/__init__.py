"""What reaches a host: commands, files, jobs, and the sessions that they travel by."""
