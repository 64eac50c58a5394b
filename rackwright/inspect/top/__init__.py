"""The fleet as it is now: what `rackwright top` reads of each host, and how it is drawn."""
