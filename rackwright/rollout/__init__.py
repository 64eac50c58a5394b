"""A change over many hosts: waves, turns, limits, quarantine, resuming."""
