"""Measurements: each is a program of its own that measures things in turn, in one sitting (bench/README.md)."""
