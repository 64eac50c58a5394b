"""The lab's hosts: base systems, their dress, and how they boot."""
