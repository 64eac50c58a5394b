"""Hosts taken out of service and in again by hand, and restarts in waves."""
