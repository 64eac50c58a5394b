"""The engines' package applied to a site's settings, and their additions: rights, keys, mounts, groups."""
