"""Programs that run on the lab hosts by their own Python, the standard library and libtorrent alone."""
