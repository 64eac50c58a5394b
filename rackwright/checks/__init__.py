"""Preflight's checks: each is a row of data with a function that judges what was seen of a host."""
