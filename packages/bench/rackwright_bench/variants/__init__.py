"""Variants of an endpoint, measured side by side on one host: what they are, how each is tried, and the story."""
