"""What one version of an engine accepts, and the checks, corrections and comparisons of options against it."""
