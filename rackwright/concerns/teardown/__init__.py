"""Remove everything of Rackwright's from a host."""
