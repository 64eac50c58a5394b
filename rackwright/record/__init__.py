"""The record of a run: what happened on which host, and whose fault it was."""
