"""The HTTP server of the stand-in engine."""
