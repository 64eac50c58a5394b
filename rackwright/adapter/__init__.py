"""The only rooms that touch pyinfra, paramiko and gevent: connections, what runs beside others, and what is patched."""
