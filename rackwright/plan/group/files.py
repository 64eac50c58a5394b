"""The files by which the members of a group live, start and stop together: part of its release."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.hostside import durable_script, host_text
from rackwright.paths import UNITS, container_name, endpoint_dir, follow_unit, group_dir, unit_name

RUN_MEMBER = "run-member"
"""The program that a member's unit runs, with its container's command line behind it."""


def member_files(endpoint: str, release: str, values: Mapping[str, str | int]) -> dict[str, str]:
    """The files by name.

    release: what stands for the release's folder. values: ports, times and names that the settings say.
    """
    own = {
        "name": endpoint,
        "unit": unit_name(endpoint),
        "container": container_name(endpoint),
        "home": endpoint_dir(endpoint),
        "here": group_dir(endpoint),
        "follow_unit": follow_unit(endpoint),
        "release": release,
        **values,
    }
    settings = "".join(f"{key}='{value}'\n" for key, value in sorted(own.items()))
    return {
        "group": settings,
        RUN_MEMBER: host_text("run_member.bash"),
        "line-head": host_text("line_head.bash"),
        "wait-ready": host_text("wait_member_ready.sh"),
        "follow": durable_script("follow_head", unit=unit_name(endpoint), units=UNITS, home=endpoint_dir(endpoint)),
        "commit-member": durable_script("commit_member", home=endpoint_dir(endpoint)),
    }
