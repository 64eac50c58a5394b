"""A fleet of real hosts on one machine, to try and test on: real systemd, sshd, Docker, iptables and apt.

from rackwright_lab import Lab

lab = Lab.open("mine")
bare, lived = lab.up(hosts=2, bare=1)
bare.run("systemctl is-system-running")
lab.down()
"""

from __future__ import annotations

from pathlib import Path

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine.shell import LabError

__all__ = ["SITE", "Host", "Lab", "LabError"]

SITE = Path(__file__).parent / "site"
"""The lab's own inventories and variables, which `rackwright init` copies; in a checkout they are the checkout's."""
