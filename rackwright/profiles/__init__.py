"""The shipped profiles: which there are, what they say, and which fit a machine."""
