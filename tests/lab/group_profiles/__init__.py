"""Profiles of several hosts, each deployed by a stand-in on hosts of a lab of their own."""
