"""What the engines' package finds in a site's settings, and what those settings add: rights, keys, mounts, groups."""
