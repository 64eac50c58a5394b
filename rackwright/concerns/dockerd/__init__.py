"""dockerd's configuration where endpoints serve: its restart is a switch of the host, in its turn behind the gate.

Decided from what the concerns docker and endpoint have read; its own reading tells how the last such restart ended.
"""
