"""The hosts' own slices of a run's record, so that an operator without it can resume the run."""
