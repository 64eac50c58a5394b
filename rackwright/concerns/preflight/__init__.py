"""Whether a host is able to run its endpoints: checks, and the concern that asks them."""
