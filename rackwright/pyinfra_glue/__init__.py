"""Everything that leans on pyinfra's insides."""
