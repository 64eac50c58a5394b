"""The files by which the members of a group live, start and stop together: part of its release."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.concerns.endpoint.group.words import FIRST_PROCESS
from rackwright.hostside import durable_script, host_text
from rackwright.paths import DOCKER_HOST, UNITS, container_name, endpoint_dir, follow_unit, group_dir, unit_name

RUN_MEMBER = "run-member"
"""The program that a member's unit runs, with its container's command line behind it."""


def member_files(endpoint: str, release: str, values: Mapping[str, str | int]) -> dict[str, str]:
    """Return the files by name.

    release: what stands for the release's folder. values: ports, times and names that the settings say.
    """
    variables = {
        "name": endpoint,
        "unit": unit_name(endpoint),
        "container": container_name(endpoint),
        "home": endpoint_dir(endpoint),
        "here": group_dir(endpoint),
        "follow_unit": follow_unit(endpoint),
        "release": release,
        "docker_host": DOCKER_HOST,
        **values,
    }
    settings = "".join(f"{key}='{value}'\n" for key, value in sorted(variables.items()))
    return {
        "group": settings,
        RUN_MEMBER: host_text("run_member.bash"),
        "line-head": host_text("line_head.bash"),
        "wait-ready": host_text("wait_member_ready.sh"),
        "follow": durable_script("follow_head", unit=unit_name(endpoint), units=UNITS, home=endpoint_dir(endpoint)),
        "commit-member": durable_script("commit_member", home=endpoint_dir(endpoint)),
    }


def launch_files() -> dict[str, str]:
    """Return the files by which the head's mpirun starts ranks on the other members, by name."""
    return {
        "launch": host_text("launch.bash"),
        "start-ranks": host_text("start_ranks.bash"),
        FIRST_PROCESS: host_text("first_process.bash"),
        "serve-first": host_text("serve_first.bash"),
        "ask-host": host_text("ask_host.bash"),
    }
