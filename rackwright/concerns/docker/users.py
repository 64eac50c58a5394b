"""Members of the group docker."""

from __future__ import annotations

from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.docker.wanted import WantedDocker
from rackwright.hostside import host_script
from rackwright.plan.change import Change, Owned, Shell


def user_changes(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return changes that add wanted users to the group docker, and remove those that Rackwright added."""
    listed = wanted.settings.docker.users
    found = [_join(user) for user in listed if "docker" not in reading.users.get(user, ())]
    ours = {name.removeprefix("docker:") for name in wanted.names("group_member") if name.startswith("docker:")}
    return found + [_leave(user) for user in sorted(ours - set(listed))]


def _join(user: str) -> Change:
    script = host_script("join_docker_group", user=user)
    owned = (Owned("group_member", f"docker:{user}"),)
    return Change(f"add {user} to the group docker", "docker.users names it", (Shell(script),), owns=owned)


def _leave(user: str) -> Change:
    script = f"id -nG {user} 2>/dev/null | grep -qw docker || exit 0; gpasswd --delete {user} docker >/dev/null"
    owned = (Owned("group_member", f"docker:{user}"),)
    return Change(
        f"take {user} out of the group docker", "docker.users no longer names it", (Shell(script),), disowns=owned
    )
