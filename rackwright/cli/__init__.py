"""The verbs of the `rackwright` command, one module each."""
