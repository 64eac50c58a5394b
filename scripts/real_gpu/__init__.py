"""A whole deploy on a real GPU: the story that is run, its record, and what travels to a machine without a network."""
