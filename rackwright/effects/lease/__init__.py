"""One writer a host: taking, renewing and giving back its lease."""
