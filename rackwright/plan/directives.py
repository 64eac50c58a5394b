"""systemd's directives that change what a service runs. Small, and read by scripts before a login: no other import."""

RUNNING = "Exec[A-Za-z]+|Type|User|Group|DynamicUser|Root[A-Za-z]+|KillMode|RemainAfterExit|PIDFile"
"""Only these count in a drop-in for all services: the others are a site's policy for all of them."""
