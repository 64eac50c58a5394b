"""A switch as the control machine follows it."""
