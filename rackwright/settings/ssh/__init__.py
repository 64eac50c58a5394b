"""What SSH itself is configured to do: options, files, and the keys of hosts."""
