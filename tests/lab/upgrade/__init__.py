"""Five hosts that the version before 0.2.0 deployed, for the lab test of upgrades."""
