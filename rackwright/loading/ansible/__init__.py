"""Ansible's own: its command, its inventories, and the variables in them that are not ours."""
