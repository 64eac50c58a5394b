"""Tests on three hosts that serve, in one lab for all of them."""
