"""The hosts of an existing Ansible inventory: `$RACKWRIGHT_ANSIBLE_INVENTORY`, or hosts.ini in the current folder."""

import os

from rackwright.inventory import from_ansible

globals().update(from_ansible(os.environ.get("RACKWRIGHT_ANSIBLE_INVENTORY", "hosts.ini"), __file__))
