"""aiperf as a command: its environment, its words, what it writes."""
