"""What an endpoint of several hosts has besides: words for its server, and files in its release."""

from rackwright.plan.group.files import launch_files, member_files
from rackwright.plan.group.words import (
    HEADLESS,
    first_member_words,
    launch_port,
    launch_ports,
    launch_words,
    member_place,
    member_words,
)

__all__ = [
    "HEADLESS",
    "first_member_words",
    "launch_files",
    "launch_port",
    "launch_ports",
    "launch_words",
    "member_files",
    "member_place",
    "member_words",
]
