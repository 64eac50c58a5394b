"""What the engines accept, as data and checks. Pure: independent of hosts and of Rackwright's settings."""

__version__ = "0.1.0"
