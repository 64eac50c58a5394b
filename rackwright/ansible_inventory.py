"""A stand-in for an Ansible inventory, since pyinfra reads Python alone; rackwright's own commands hand it over."""

from rackwright.inventory import from_ansible
from rackwright.record.handover import received

globals().update(from_ansible(received().inventory))
