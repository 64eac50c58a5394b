"""Deploys that the `rackwright` command runs through pyinfra, with a site's own inventory."""
