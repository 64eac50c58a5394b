"""A folder with all that a lock names, for networks that reach nothing: written, verified, and handed to the hosts."""
