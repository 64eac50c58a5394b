"""Suites: sets of requests, patterns of arrival, and the cells that they make. Pure but for files."""
