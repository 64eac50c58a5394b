"""A run of this process under pyinfra: its inventories, what deploy.py declares, its hosts, read and changed."""
