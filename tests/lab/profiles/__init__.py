"""One lab host in the groups of a shipped profile, for the lab test of the profiles."""
