"""Stands for aiperf 0.13.0, which is 1.2 GB: the same command line, real requests, the same two files."""
