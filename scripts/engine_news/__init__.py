"""Shows what a new release of an engine changes for each profile and rule: sources are read, nothing is run."""
