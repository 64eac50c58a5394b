"""The hosts of an existing Ansible inventory: `$RACKWRIGHT_ANSIBLE_INVENTORY`, or the hosts.ini of this site."""

import os

from rackwright.inventory import from_ansible

globals().update(from_ansible(os.environ.get("RACKWRIGHT_ANSIBLE_INVENTORY", "hosts.ini"), __file__))
