"""Checks of a host's ability to run its endpoints, and the concern that runs them."""
