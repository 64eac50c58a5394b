"""The scripts of a group with their parameters. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.concerns.endpoint.binding import Binding
from rackwright.hostside import durable_script, host_script
from rackwright.paths import UNITS, endpoint_dir, group_dir, held_file, unit_name

ASKING = 20
"""Seconds in which each member must report that it has a release: it checks all its checksums in this time."""


def join_group_script(endpoint: str, release: str, binding: Binding, keep: int) -> str:
    """Let a host take its place in a group; it points at `release` when it points at nothing yet."""
    words = {"unit": unit_name(endpoint), "home": endpoint_dir(endpoint), "units": UNITS, "binding": binding.text}
    return durable_script("join_group", **words, held=held_file(endpoint), release=release, keep=keep)


def wait_followed_script(endpoint: str, release: str, seconds: int) -> str:
    """Wait until a member runs what its head has committed."""
    names = {"unit": unit_name(endpoint), "home": endpoint_dir(endpoint)}
    return host_script("wait_followed", **names, release=release, seconds=seconds)


def ask_members_script(endpoint: str, release: str, members: Sequence[str]) -> str:
    """On the head, before anything is stopped: every member is in line, and has the release whole."""
    words = {"unit": unit_name(endpoint), "here": group_dir(endpoint), "members": " ".join(members)}
    return host_script("ask_members", **words, release=release, seconds=ASKING)
