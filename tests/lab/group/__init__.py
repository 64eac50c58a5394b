"""Both hosts of a worker's lab as one endpoint, for the lab test of groups."""
