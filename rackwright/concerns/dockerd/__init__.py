"""dockerd's configuration where endpoints serve: its restart is a switch of the host, in its turn, with the gate.

It is decided from the readings of docker and endpoint; its own reading has the result of the last such restart.
"""
