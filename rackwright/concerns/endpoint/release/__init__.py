"""Releases on the host: each endpoint's files in a folder named by content that appears whole and stays."""
