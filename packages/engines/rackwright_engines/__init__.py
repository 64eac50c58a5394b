"""Engine options as data and checks. Pure: independent of hosts and of Rackwright's settings."""

__version__ = "0.2.0"
