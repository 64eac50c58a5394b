"""What rackwright's own commands hand to pyinfra in place of an Ansible inventory, since pyinfra reads Python alone."""

from rackwright.inventory import from_ansible
from rackwright.record.handover import received

globals().update(from_ansible(received().inventory))
