"""Options of one version of an engine, and the checks, corrections and comparisons against them."""
