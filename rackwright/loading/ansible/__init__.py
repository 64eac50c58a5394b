"""What is Ansible's: its command, its inventories, and the variables in them that are not ours."""
