"""HAProxy in front of the endpoints: its configuration and its clients' keys."""
