"""The word linter: docstrings, names and sentences against word lists."""
