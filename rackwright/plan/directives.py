"""systemd's directives that change what a service runs. Few, and read by scripts before a login: no other import."""

RUNNING = "Exec[A-Za-z]+|Type|User|Group|DynamicUser|Root[A-Za-z]+|KillMode|RemainAfterExit|PIDFile"
"""Of a drop-in for all services only these count: the others are how a site treats all of them."""
